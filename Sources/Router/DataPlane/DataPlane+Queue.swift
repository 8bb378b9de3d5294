import WireProtocol

/// What clients ask of a queue. A change is answered once it is on disk.
extension DataPlane {
  func perform(_ command: QueueCommand, on id: SessionID, for requester: Requester) throws(RequestError) {
    switch command {
    case .show(let page) where page == QueuePage() && requester.webSocket != nil:
      let session = store.sessions[id] ?? RoutedSession(id: id)
      let queue = session.encodedQueue
      requester.answer(.queue(id, queue.view), showing: (queue, of: session))
    case .show(let page):
      requester.answer(.queue(id, store.sessions[id]?.queueView(page) ?? TrackQueue().view(page)))
    case .history(let limit):
      requester.answer(.history(id, (store.sessions[id]?.queue ?? TrackQueue()).historyView(limit: limit)))
    case .find(let query, let place): try find(query, at: place, in: id, for: requester)
    default: try change(command, id, for: requester)
    }
  }

  private func change(_ command: QueueCommand, _ id: SessionID, for requester: Requester) throws(RequestError)
  {
    let session = try store.session(id, for: requester.client, limitFactor: requester.limitFactor)
    defer { store.removeIfUnused(session) }
    if case .add(let tracks, _) = command {
      try requireRoom(for: tracks.reduce(0) { $0 + $1.byteCount }, in: session)
    }
    try state.prepare(session, for: requester.client)
    let before = session.queue.view()
    // What is refused is refused before anything is changed.
    let isIdle = session.isIdle || session.playsScore
    let (added, action) = try Self.apply(command, to: &session.queue, isSessionIdle: isIdle)
    let queue = EncodedQueue(session.queue.view())
    // A change may also be behind the page that is shown.
    let hasChanged = queue.view != before || session.queue.hasChangedRows
    var answer = queue.view
    answer.added = added
    // Before anything is written, so that the answer is written with the change.
    requester.willAnswer(.queue(id, answer))
    if let action, action != .stop { perform(action, session) }
    seeToNext(session)
    save(session, for: requester) { [self] unwritten in
      if let unwritten { return requester.refuseUnwritten(unwritten, sessionID: id) }
      // What plays goes on until it is sure that it is to end.
      if action == .stop, session.starting == nil, session.owed == nil { perform(.stop, session) }
      requester.answer(.queue(id, answer), showing: added == nil ? (queue, of: session) : nil)
      if hasChanged { announce(queue, of: session, except: requester.webSocket) }
    }
  }

  private static func apply(
    _ command: QueueCommand, to queue: inout TrackQueue, isSessionIdle: Bool
  ) throws(RequestError) -> (added: [String]?, action: TrackQueue.Action?) {
    switch command {
    case .add(let tracks, let place):
      return try queue.add(tracks, at: place, isSessionIdle: isSessionIdle)
    case .move(let id, let position): try queue.move(id: id, to: position)
    case .remove(let id): try queue.remove(id: id)
    case .clear: queue.clear()
    case .shuffle: queue.shuffle()
    case .loop(let mode): queue.setLoop(mode)
    case .skip: return (nil, try queue.skip(isSessionIdle: isSessionIdle))
    case .skipTo(let id): return (nil, try queue.skip(to: id))
    case .previous: return (nil, try queue.previous())
    case .quality(let kilobits): queue.bitrateKilobits = kilobits
    case .show, .history, .find: preconditionFailure("these change nothing by themselves")
    }
    return (nil, nil)
  }

  /// Has the engine find out what the words lead to, and adds that.
  private func find(
    _ query: String, at place: TrackQueue.Place, in id: SessionID, for requester: Requester
  ) throws(RequestError) {
    let request: ResolveRequest
    do {
      request = try ResolveRequest(query: query, limit: ResolveRequest.limitRange.upperBound)
    } catch {
      throw RequestError(error)
    }
    let found = { [weak self] (event: EngineEvent) in
      guard let self else { return }
      do throws(RequestError) {
        try add(Self.found(event), at: place, in: id, for: requester)
      } catch {
        requester.refuse(error.report, sessionID: id)
      }
    }
    lookUp(.resolve, .resolve(request), for: requester, found)
  }

  /// Adds what was found: the queue may have left the memory meanwhile.
  private func add(
    _ tracks: [QueuedTrack], at place: TrackQueue.Place, in id: SessionID, for requester: Requester
  ) throws(RequestError) {
    let session = try store.session(id, for: requester.client, limitFactor: requester.limitFactor)
    withQueue(of: session, for: requester.client) { [self] refusal in
      do throws(RequestError) {
        if let refusal { throw refusal }
        try change(.add(tracks, at: place), id, for: requester)
      } catch {
        requester.refuse(error.report, sessionID: id)
      }
    }
  }

  /// A playlist's first 50 tracks, and of a search the best.
  private static func found(_ event: EngineEvent) throws(RequestError) -> [QueuedTrack] {
    if case .error(let report) = event.body { throw RequestError(report) }
    guard case .resolved(let resolution) = event.body, !resolution.entries.isEmpty else {
      throw RequestError(.sourceNotFound, "nothing was found", hint: "try other words")
    }
    let entries = resolution.kind == .playlist ? resolution.entries[...] : resolution.entries.prefix(1)
    // Of a playlist, what cannot be played is left out.
    let tracks = entries.compactMap { try? QueuedTrack($0).checked() }
    guard !tracks.isEmpty else {
      throw RequestError(
        .invalidSource, "what was found has no address that can be played", hint: "try other words")
    }
    return tracks
  }

  func announce(_ queue: EncodedQueue, of session: RoutedSession, except listener: WebSocketListener? = nil) {
    guard session.listenerCount > 0 else { return }
    session.broadcast(.queue(queue, of: session, requestID: nil), except: listener)
  }
}

extension QueuedTrack {
  fileprivate init(_ entry: Resolution.Entry) {
    self.init(url: entry.url, title: entry.title)
    artist = entry.artist
    durationMilliseconds = entry.durationMilliseconds
    artwork = entry.thumbnail
  }
}
