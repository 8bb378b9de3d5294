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
      requester.answer(.queue(id, store.sessions[id]?.playback.queueView(page) ?? TrackQueue().view(page)))
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
    let requesterID = requesterID(requester)
    do throws(RequestError) {
      try run(session) { (playback, context) throws(RequestError) in
        try playback.change(command, for: requesterID, &context)
      }
    } catch {
      _ = takeRequester(requesterID)
      throw error
    }
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
    withQueue(of: session, for: requester.client) { [self] requestError in
      do throws(RequestError) {
        if let requestError { throw requestError }
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
}

extension QueuedTrack {
  fileprivate init(_ entry: Resolution.Entry) {
    self.init(url: entry.url, title: entry.title)
    artist = entry.artist
    durationMilliseconds = entry.durationMilliseconds
    artwork = entry.thumbnail
  }
}
