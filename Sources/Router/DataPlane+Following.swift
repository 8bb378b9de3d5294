import NIOCore
import WireProtocol

/// How a session goes on: what the queue wants is asked of the engine, and what the engine does moves the queue.
extension DataPlane {
  // MARK: Asking the engine

  func perform(_ action: TrackQueue.Action, _ session: RoutedSession) {
    switch action {
    case .stop: stop(session)
    case .play(let entry): play(request(for: entry, session), session)
    }
  }

  /// Sends a play of the Router's own. One that cannot be sent is owed.
  private func play(_ request: PlayRequest, _ session: RoutedSession) {
    session.owed = nil
    session.prepared = nil
    do {
      let id = try send(.session(session.id, .play(request)), for: .router)
      session.starting = StartingPlay(requestID: id, request: request, entry: nil)
    } catch {
      owe(request, session)
    }
  }

  /// Asks for what is owed, or for what played when the engine was lost.
  func goOn(_ session: RoutedSession) {
    guard session.starting == nil, let request = session.owed ?? session.continuation else { return }
    logger.info(
      "going on with \(request.url) at \(request.startMilliseconds) ms",
      metadata: ["session": "\(session.id)"])
    play(request, session)
  }

  private func stop(_ session: RoutedSession) {
    session.owed = nil
    // What does not play any more needs no stop.
    _ = try? send(.session(session.id, .stop), for: .inside { _ in })
  }

  private func owe(_ request: PlayRequest, _ session: RoutedSession) {
    session.owed = request
    let wait = TimeAmount.milliseconds(RouterLimits.retryMilliseconds)
    eventLoop.assumeIsolated().scheduleTask(in: wait) { [weak self, weak session] in
      guard let self, let session, store.sessions[session.id] === session, session.owed != nil else { return }
      // Without an engine, its return asks.
      if link.isEstablished { goOn(session) }
    }
  }

  private func request(for entry: QueueEntry, _ session: RoutedSession) -> PlayRequest {
    PlayRequest(
      url: entry.track.url, volume: session.volume, bitrateKilobits: session.queue.bitrateKilobits,
      tag: newTag(for: entry))
  }

  /// Names one play of an entry, so that what the engine says can be told from what it says of any other.
  func newTag(for entry: QueueEntry) -> String {
    tagCount += 1
    return "\(entry.id).\(pending.prefix)-\(tagCount)"
  }

  /// The entry that a tag is of.
  private func entryID(of tag: String) -> String {
    String(tag.prefix { $0 != "." })
  }

  // MARK: What the engine does

  func follow(_ event: EngineEvent, _ session: RoutedSession) {
    switch event.body {
    case .extracting(let url, let tag): began(session, url, tag)
    case .ready(let ready): session.queue.describeCurrent { $0.complete(with: ready) }
    case .error(let report): failed(session, report, requestID: event.requestID)
    case .ended(let reason, _): ended(session, reason)
    default: break
    }
    seeToNext(session)
  }

  private func began(_ session: RoutedSession, _ url: String, _ tag: String?) {
    defer { session.owed = nil }
    if let starting = session.starting {
      // What was asked for before: ours follows.
      guard starting.request.tag == tag else { return }
      session.starting = nil
      session.prepared = nil
      if let entry = starting.entry { change(session) { $0.nowPlays(entry) } }
      return
    }
    if let prepared = session.prepared, prepared.request.tag == tag {
      session.prepared = nil
      session.isAwaitingPrepared = false
      return change(session) { queue in
        if prepared.isClients || !queue.wentOn(to: prepared.entry.id) { queue.nowPlays(prepared.entry) }
      }
    }
    if let tag, tag == session.withdrawnTag {
      // It began before the engine heard that it was not to.
      return stop(session)
    }
    // Another router's, or an operator's.
    session.prepared = nil
    change(session) { queue in queue.nowPlays(queue.newEntry(QueuedTrack(url: url))) }
  }

  private func ended(_ session: RoutedSession, _ reason: EngineEvent.EndReason) {
    // Of what played before the play that is on its way.
    guard session.starting == nil else { return }
    let overload = session.takeOverload()
    if let prepared = session.prepared, !prepared.hasFailed, reason == .finished {
      // The engine goes on to it, and says so next; or it says that the prepare has come too late.
      session.isAwaitingPrepared = true
      return
    }
    session.prepared = nil
    if let overload, reason == .loadFailed, let entry = session.queue.current {
      return refused(session, request(for: entry, session), overload)
    }
    goOn(session, after: reason)
  }

  private func failed(_ session: RoutedSession, _ report: ErrorReport, requestID: String?) {
    if let requestID, let starting = session.starting, starting.requestID == requestID {
      // Refused before it began, so that no end will be reported.
      session.starting = nil
      // A client's own is the client's to ask for again.
      if starting.entry == nil { refused(session, starting.request, report) }
    } else if report.code == .overloaded, session.state == .extracting {
      session.overload = report
    }
  }

  /// What the engine answers to a `prepare`.
  func prepareAnswered(_ session: RoutedSession, _ event: EngineEvent, requestID: String) {
    guard case .error = event.body, session.prepared?.requestID == requestID else { return }
    session.prepared?.hasFailed = true
    guard session.isAwaitingPrepared else { return }
    session.isAwaitingPrepared = false
    session.prepared = nil
    goOn(session, after: .finished)
  }

  /// A play of ours was refused. What the engine has no room for now is asked for again; anything else will
  /// not become better.
  private func refused(_ session: RoutedSession, _ request: PlayRequest, _ report: ErrorReport) {
    guard ![.tooManySessions, .workersExhausted, .overloaded, .engineUnavailable].contains(report.code) else {
      return owe(request, session)
    }
    session.owed = nil
    // The engine that played it is gone, and no other end will be reported.
    guard !session.isLost else { return engineReported(lostEnd(of: session, .loadFailed)) }
    goOn(session, after: .loadFailed)
    // What played before was to make room.
    if session.queue.current == nil, session.state != .idle { stop(session) }
  }

  private func goOn(_ session: RoutedSession, after reason: EngineEvent.EndReason) {
    var action: TrackQueue.Action?
    change(session) { action = $0.ended(reason) }
    if let action { perform(action, session) }
  }

  func change(_ session: RoutedSession, _ change: (inout TrackQueue) -> Void) {
    let before = session.queue.view()
    change(&session.queue)
    guard session.queue.view() != before else { return }
    state.save(session) { [self] in announceQueue(session) }
  }

  func lostEnd(of session: RoutedSession, _ reason: EngineEvent.EndReason) -> EngineEvent {
    EngineEvent(
      .ended(reason, positionMilliseconds: session.snapshot.positionMilliseconds ?? 0),
      sessionID: session.id)
  }

  // MARK: Without a gap

  /// Keeps the engine told what follows the current track, once its end is near. Called after every change.
  func seeToNext(_ session: RoutedSession) {
    guard session.isSettled, session.prepared?.isClients != true else { return }
    guard let next = session.queue.following, let remaining = session.remainingMilliseconds,
      remaining <= RouterLimits.prepareAheadMilliseconds
    else { return withdrawPrepared(session) }
    if session.prepared?.entry.id == next.id { return }
    withdrawPrepared(session)
    prepare(request(for: next, session), next, session)
  }

  private func prepare(_ request: PlayRequest, _ entry: QueueEntry, _ session: RoutedSession) {
    var requestID = ""
    let asker = Asker.inside { [weak self] event in
      self?.prepareAnswered(session, event, requestID: requestID)
    }
    // Where it cannot be sent, the next second tries again.
    guard let id = try? send(.session(session.id, .prepare(request)), for: asker) else { return }
    requestID = id
    session.prepared = PreparedPlay(entry: entry, request: request, requestID: id, isClients: false)
  }

  private func withdrawPrepared(_ session: RoutedSession) {
    guard let prepared = session.prepared else { return }
    session.prepared = nil
    guard !prepared.hasFailed else { return }
    session.withdrawnTag = prepared.request.tag
    _ = try? send(.session(session.id, .unprepare), for: .inside { _ in })
  }

  /// The engine, which was out of reach, plays this.
  func moveQueue(_ session: RoutedSession, to snapshot: SessionSnapshot) {
    if let tag = snapshot.tag, session.queue.wentOn(to: entryID(of: tag)) { return announceQueue(session) }
    // A play that was sent in the last moment before this Router's start, or one of another's.
    guard session.queue.current == nil || session.queue.current?.track.url != snapshot.url,
      let url = snapshot.url
    else { return }
    change(session) { queue in queue.nowPlays(queue.newEntry(QueuedTrack(url: url, title: snapshot.title))) }
  }

  /// The engine is away, and with it what was on its way to it.
  func loseEngine(_ session: RoutedSession) {
    if let starting = session.starting {
      session.starting = nil
      if let entry = starting.entry { session.queue.nowPlays(entry) }
      session.owed = starting.request
    } else if session.isAwaitingPrepared {
      session.isAwaitingPrepared = false
      goOn(session, after: .finished)
    }
    session.prepared = nil
    session.withdrawnTag = nil
    session.engineWentAway()
  }
}

extension QueuedTrack {
  /// Takes what the engine has found out and nobody has said before.
  fileprivate mutating func complete(with ready: Ready) {
    title = title ?? ready.title
    artist = artist ?? ready.artist
    durationMilliseconds = durationMilliseconds ?? ready.durationMilliseconds
    artwork = artwork ?? ready.artwork
  }
}
