import WireProtocol

/// What follows when the engine, or the Router before this one, was away.
extension DataPlane {
  /// The engine is away, and with it what was on its way to it.
  func loseEngine(_ session: RoutedSession) {
    if let starting = session.starting {
      session.starting = nil
      if let entry = starting.entry { session.queue.nowPlays(entry) }
      session.owed = starting.request
    }
    session.isStopping = false
    session.engineWentAway()
  }

  /// The engine was out of reach of this Router, or of the one before it, and plays this.
  func reconcile(_ session: RoutedSession, with snapshot: SessionSnapshot) {
    if let owed = session.owed, owed.tag != snapshot.tag {
      // What was asked for last has not reached it.
      session.adopt(snapshot)
      return goOn(session)
    }
    let isKnown = session.owed != nil || session.plays(snapshot)
    session.adopt(snapshot)
    session.owed = nil
    // Where each packet belongs is known at once; the queue may have to be read first.
    withQueue(of: session) { [self] in
      move(session, to: snapshot, isKnown: isKnown)
      prepareAgain(session)
    }
  }

  private func move(_ session: RoutedSession, to snapshot: SessionSnapshot, isKnown: Bool) {
    if !isKnown {
      began(session, snapshot.url ?? "", snapshot.tag)
    } else if let tag = snapshot.tag, let url = snapshot.url, session.queue.current?.id != entryID(tag) {
      // A client's own that had not begun when the Router died.
      change(session) { queue in
        queue.nowPlays(queue.newEntry(QueuedTrack(url: url, title: snapshot.title)))
      }
    }
  }

  /// Whether what was prepared has reached the engine is not known.
  private func prepareAgain(_ session: RoutedSession) {
    guard let prepared = session.prepared else { return }
    if prepared.isClients { return prepare(prepared, session, for: .inside({ _ in })) }
    session.prepared = nil
    seeToNext(session)
    if session.prepared == nil { _ = try? send(.session(session.id, .unprepare), for: .inside({ _ in })) }
  }

  /// The engine does not play the session any more.
  func goOnWithout(_ session: RoutedSession, isSameEngine: Bool) {
    if session.owed != nil {
      // What it was to take the place of is gone too.
      session.isLost = session.state != .idle
      return goOn(session)
    }
    if session.playsScore { return engineReported(lostEnd(of: session, .cleanup)) }
    if session.isAwaitingPrepared {
      session.isAwaitingPrepared = false
      session.prepared = nil
      return goOn(session, after: .finished)
    }
    session.prepared = nil
    session.isLost = true
    // One that has stayed up ends a session only for good; one that has restarted has lost it.
    isSameEngine ? engineReported(lostEnd(of: session, .finished)) : goOn(session)
  }
}
