import WireProtocol

extension ClientCommand {
  /// What a command costs by its length alone: reading it takes that long.
  static func cost(textByteCount: Int) -> Int { 1 + textByteCount / RouterLimits.textByteCountPerToken }

  /// What it costs besides, in tokens.
  ///
  /// - Parameter session: the one it is for, where it is known.
  func furtherCost(_ session: RoutedSession?) -> Int {
    switch action {
    case .ping: 0
    case .engine(.media), .engine(.resolve), .queue(_, .find): RouterLimits.lookUpTokens
    case .queue(_, .history): (session?.queue.history).map { Self.cost(ofWriting: $0) } ?? 0
    case .queue(_, .show): session?.queue.pageCost ?? 0
    case .queue(_, let command): (session?.queue.changeCost ?? 0) + command.addedCost
    case .engine(.session(_, let action)): action.isWork ? RouterLimits.engineWorkTokens : 0
    case .engine: 0
    }
  }

  /// The session it is for, where there is one.
  func session(in store: SessionStore) -> RoutedSession? {
    switch action {
    case .engine(.session(let id, _)), .queue(let id, _): store.sessions[id]
    case .engine, .ping: nil
    }
  }

  fileprivate static func cost(ofWriting entries: some Sequence<QueueEntry>) -> Int {
    entries.reduce(0) { $0 + $1.track.writtenByteCount } / RouterLimits.queueByteCountPerToken
  }
}

extension QueueCommand {
  fileprivate var addedCost: Int {
    guard case .add(let tracks, _) = self else { return 0 }
    return tracks.count / RouterLimits.addedTracksPerToken
  }
}

extension EngineCommand.SessionAction {
  fileprivate var isWork: Bool {
    switch self {
    case .play, .prepare, .pause, .resume, .stop, .seek, .volume, .perform: true
    case .unprepare, .mute, .status, .why, .standBy, .takeOver, .handOver: false
    }
  }
}

extension TrackQueue {
  /// The cost of encoding the queue's page that all listeners are shown.
  fileprivate var pageCost: Int {
    let page = waiting.prefix(RouterLimits.maximumQueuePage)
    return page.count / RouterLimits.pageEntriesPerToken
      + ClientCommand.cost(ofWriting: page.lazy.map(\.entry))
  }

  /// The cost of a change, after which the page is encoded again.
  fileprivate var changeCost: Int { waiting.count / RouterLimits.queueEntriesPerToken + pageCost }
}

extension QueuedTrack {
  /// About what its longest fields are in JSON.
  fileprivate var writtenByteCount: Int {
    url.utf8.count + (title?.utf8.count ?? 0) + (artwork?.utf8.count ?? 0)
  }
}
