import WireProtocol

/// What clients ask of a queue. A change is answered once it is on disk.
extension DataPlane {
  func perform(_ command: QueueCommand, on id: SessionID, for asker: Asker) throws(Refusal) {
    switch command {
    case .show(let page) where page == QueuePage() && asker.webSocket != nil:
      let session = store.sessions[id] ?? RoutedSession(id: id)
      let queue = session.encodedQueue
      asker.answer(.queue(id, queue.view), showing: (queue, of: session))
    case .show(let page):
      asker.answer(.queue(id, store.sessions[id]?.playback.queueView(page) ?? TrackQueue().view(page)))
    case .history(let limit):
      asker.answer(.history(id, (store.sessions[id]?.queue ?? TrackQueue()).historyView(limit: limit)))
    case .find(let query, let place): try find(query, at: place, in: id, for: asker)
    default: try change(command, id, for: asker)
    }
  }

  private func change(_ command: QueueCommand, _ id: SessionID, for asker: Asker) throws(Refusal) {
    let session = try store.session(id, for: asker.client, limitFactor: asker.limitFactor)
    defer { store.removeIfUnused(session) }
    if case .add(let tracks, _) = command {
      try requireRoom(for: tracks.reduce(0) { $0 + $1.byteCount }, in: session)
    }
    try state.prepare(session, for: asker.client)
    let requester = requester(asker)
    do throws(Refusal) {
      try run(session) { (playback, context) throws(Refusal) in
        try playback.change(command, for: requester, &context)
      }
    } catch {
      _ = takeAsker(requester)
      throw error
    }
  }

  /// Has the engine find out what the words lead to, and adds that.
  private func find(
    _ query: String, at place: TrackQueue.Place, in id: SessionID, for asker: Asker
  ) throws(Refusal) {
    let request: ResolveRequest
    do {
      request = try ResolveRequest(query: query, limit: ResolveRequest.limitRange.upperBound)
    } catch {
      throw Refusal(error)
    }
    let found = { [weak self] (event: EngineEvent) in
      guard let self else { return }
      do throws(Refusal) {
        try add(Self.found(event), at: place, in: id, for: asker)
      } catch {
        asker.refuse(error.report, sessionID: id)
      }
    }
    lookUp(.resolve, .resolve(request), for: asker, found)
  }

  /// Adds what was found: the queue may have left the memory meanwhile.
  private func add(
    _ tracks: [QueuedTrack], at place: TrackQueue.Place, in id: SessionID, for asker: Asker
  ) throws(Refusal) {
    let session = try store.session(id, for: asker.client, limitFactor: asker.limitFactor)
    withQueue(of: session, for: asker.client) { [self] refusal in
      do throws(Refusal) {
        if let refusal { throw refusal }
        try change(.add(tracks, at: place), id, for: asker)
      } catch {
        asker.refuse(error.report, sessionID: id)
      }
    }
  }

  /// A playlist's first 50 tracks, and of a search the best.
  private static func found(_ event: EngineEvent) throws(Refusal) -> [QueuedTrack] {
    if case .error(let report) = event.body { throw Refusal(report) }
    guard case .resolved(let resolution) = event.body, !resolution.entries.isEmpty else {
      throw Refusal(.sourceNotFound, "nothing was found", hint: "try other words")
    }
    let entries = resolution.kind == .playlist ? resolution.entries[...] : resolution.entries.prefix(1)
    // Of a playlist, what cannot be played is left out.
    let tracks = entries.compactMap { try? QueuedTrack($0).checked() }
    guard !tracks.isEmpty else {
      throw Refusal(
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
