import NIOCore
import ServiceSupport
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

  /// Asks for a play of the Router's own.
  private func play(_ request: PlayRequest, _ session: RoutedSession) {
    begin(StartingPlay(request: request, entry: nil), session, for: .router)
  }

  /// Sends a play once it is on disk: a Router that dies in between asks for it again, and one that finds
  /// another track playing knows whether that is older or newer.
  func begin(_ play: StartingPlay, _ session: RoutedSession, for requester: Requester) {
    release(session.id)
    var play = play
    if play.entry == nil {
      session.prepared = nil
    } else {
      play.owedBefore = session.owed
    }
    session.owed = nil
    // Whatever is to stop, this comes after it.
    session.isStopping = false
    session.starting = play
    let verdict = Result { () throws(RequestError) in try plan(play.request, heldAt: play.heldAtMilliseconds)
    }
    save(session, for: requester) { [self] unwritten in
      if let unwritten { return requester.refuseUnwritten(unwritten, sessionID: session.id) }
      guard let starting = session.starting, starting.request.tag == play.request.tag else {
        return requester.refuse(.overtaken, sessionID: session.id)
      }
      do throws(RequestError) {
        guard try verdict.get() else {
          session.starting = nil
          return hold(starting, session, for: requester)
        }
        let requestID = try send(.session(session.id, .play(play.request)), for: requester)
        session.starting?.requestID = requestID
        state.noteSent(play.request.tag, requestID, of: session)
        if let tag = play.request.tag { crashes.sent(tag) }
      } catch {
        session.starting = nil
        requester.refuse(error.report, sessionID: session.id)
        if play.entry != nil { return goOn(session, without: starting) }
        error.report.code == .sourceCrashesEngine
          ? crashed(session, error.report) : owe(play.request, session)
      }
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
    release(session.id)
    // Not yet asked for again, so that this engine does not know of it.
    if session.isLost, session.starting == nil {
      session.withdraw(session.playback.tag)
      return engineReported(lostEnd(of: session, .stopped))
    }
    do {
      // What does not play any more needs no stop.
      try send(.session(session.id, .stop), for: .inside({ _ in }))
      session.isStopping = true
    } catch {
      guard session.state != .idle else { return }
      // An engine that comes back with it is told then.
      session.withdraw(session.playback.tag)
      engineReported(lostEnd(of: session, .stopped))
    }
  }

  /// A client's own play comes to nothing, and is the client's to ask for again: what it was to replace goes on.
  func goOn(_ session: RoutedSession, without play: StartingPlay) {
    if let owed = play.owedBefore { return owe(owed, session) }
    if let reason = play.endedMeanwhile { goOn(session, after: reason) }
  }

  func owe(_ request: PlayRequest, _ session: RoutedSession) {
    session.owed = request
    state.save(session)
    let wait = TimeAmount.milliseconds(RouterLimits.retryMilliseconds)
    eventLoop.assumeIsolated().scheduleTask(in: wait) { [weak self, weak session] in
      guard let self, let session, store.sessions[session.id] === session, session.owed != nil else { return }
      // A client's own goes first.
      guard !session.isHeld else { return owe(request, session) }
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
  func entryID(_ tag: String) -> String {
    String(tag.prefix { $0 != "." })
  }

  // MARK: What the engine does

  func follow(_ event: EngineEvent, _ session: RoutedSession) {
    if event.body.movesQueue { state.note(event, of: session) }
    withQueue(of: session) { [self] in followNow(event, session) }
  }

  private func followNow(_ event: EngineEvent, _ session: RoutedSession) {
    switch event.body {
    case .extracting(let url, let tag): began(session, url, tag)
    case .ready(let ready) where session.playsCurrent(ready.url):
      session.queue.describeCurrent { $0.complete(with: ready) }
    case .error(let report): failed(session, report, requestID: event.requestID)
    case .ended(let reason, _): ended(session, reason)
    default: break
    }
    seeToNext(session)
    station.follow(event.body, session)
  }

  func began(_ session: RoutedSession, _ url: String, _ tag: String?) {
    defer { session.owed = nil }
    if let starting = session.starting, starting.request.tag == tag {
      session.starting = nil
      session.prepared = nil
      session.isAwaitingPrepared = false
      if let entry = starting.entry { change(session) { $0.nowPlays(entry) } }
      return
    }
    // What was asked for before: ours follows. A client's own may yet be refused.
    if let starting = session.starting, starting.entry == nil { return }
    if let prepared = session.prepared, prepared.request.tag == tag {
      session.prepared = nil
      session.isAwaitingPrepared = false
      return change(session) { queue in
        if prepared.isClients || !queue.wentOn(to: prepared.entry.id) { queue.nowPlays(prepared.entry) }
      }
    }
    if let tag, session.withdrawnTags.contains(tag) {
      // It began before the engine heard that it was not to.
      if session.isAwaitingPrepared {
        session.isAwaitingPrepared = false
        goOn(session, after: .finished)
      }
      if session.starting == nil { stop(session) }
      return
    }
    if let tag, session.queue.holds(entryID(tag)) {
      // Prepared before the engine or this Router was out of reach, and prepared again since.
      if session.prepared != nil { _ = try? send(.session(session.id, .unprepare), for: .inside({ _ in })) }
      session.prepared = nil
      session.isAwaitingPrepared = false
      return change(session) { _ = $0.wentOn(to: entryID(tag)) }
    }
    session.prepared = nil
    guard url != PlayRequest.scoreURL else { return change(session) { $0.nowPlaysNothing() } }
    // Another router's, or an operator's.
    change(session) { queue in queue.nowPlays(queue.newEntry(QueuedTrack(url: url))) }
  }

  private func ended(_ session: RoutedSession, _ reason: EngineEvent.EndReason) {
    session.isStopping = false
    // Of what played before the play that is on its way.
    if let starting = session.starting, starting.entry == nil || reason == .replaced { return }
    let overload = session.takeOverload()
    if let prepared = session.prepared, !prepared.hasFailed, reason == .finished {
      // The engine goes on to it, and says so next; or it says that the prepare has come too late.
      session.isAwaitingPrepared = true
      return
    }
    session.prepared = nil
    guard session.starting == nil else {
      session.starting?.endedMeanwhile = reason
      return
    }
    if let overload, reason == .loadFailed, let entry = session.queue.current {
      return refused(session, request(for: entry, session), overload)
    }
    goOn(session, after: reason)
  }

  private func failed(_ session: RoutedSession, _ report: ErrorReport, requestID: String?) {
    if report.code == .noSuchSession { session.isStopping = false }
    if let requestID, let starting = session.starting, starting.requestID == requestID {
      // Refused before it began, so that no end will be reported.
      session.starting = nil
      if let tag = starting.request.tag { crashes.ended(tag) }
      if starting.entry == nil {
        refused(session, starting.request, report)
      } else {
        goOn(session, without: starting)
      }
    } else if report.code == .overloaded, session.state == .extracting {
      session.overload = report
    }
  }

  /// What the engine answers to a `prepare`.
  private func prepareAnswered(_ session: RoutedSession, _ event: EngineEvent, tag: String?) {
    guard case .error = event.body, session.prepared?.request.tag == tag else { return }
    session.prepared?.hasFailed = true
    if let tag { crashes.ended(tag) }
    guard session.isAwaitingPrepared else { return }
    session.isAwaitingPrepared = false
    session.prepared = nil
    if session.starting != nil {
      session.starting?.endedMeanwhile = .finished
    } else {
      goOn(session, after: .finished)
    }
  }

  /// A play of ours was refused. What the engine has no room for now is asked for again; anything else will
  /// not become better.
  private func refused(_ session: RoutedSession, _ request: PlayRequest, _ report: ErrorReport) {
    guard ![.tooManySessions, .workersExhausted, .overloaded, .engineUnavailable].contains(report.code) else {
      return owe(request, session)
    }
    refused(session)
  }

  /// The queue advances from what will not become better.
  func refused(_ session: RoutedSession) {
    session.owed = nil
    // The engine that played it is gone, and no other end will be reported.
    guard !session.isLost else { return engineReported(lostEnd(of: session, .loadFailed)) }
    goOn(session, after: .loadFailed)
    // What played before was to make room.
    if session.queue.current == nil, session.state != .idle { stop(session) }
  }

  func goOn(_ session: RoutedSession, after reason: EngineEvent.EndReason) {
    withQueue(of: session) { [self] in
      var action: TrackQueue.Action?
      change(session) { action = $0.ended(reason) }
      if let action { perform(action, session) }
    }
  }

  /// The queue must be in memory.
  func change(_ session: RoutedSession, _ change: (inout TrackQueue) -> Void) {
    let before = session.queue.view()
    change(&session.queue)
    let queue = EncodedQueue(session.queue.view())
    guard queue.view != before || session.queue.hasChangedRows else { return }
    state.save(session) { [self] in announce(queue, of: session) }
  }

  func lostEnd(of session: RoutedSession, _ reason: EngineEvent.EndReason) -> EngineEvent {
    EngineEvent(
      .ended(reason, positionMilliseconds: session.snapshot.positionMilliseconds ?? 0),
      sessionID: session.id)
  }

  // MARK: Without a gap

  /// Keeps the engine told what follows the current track, once its end is near. Called after every change.
  func seeToNext(_ session: RoutedSession) {
    guard session.isSettled, session.storedRows == nil, session.prepared?.isClients != true else { return }
    guard let next = session.queue.following, let remaining = session.remainingMilliseconds,
      remaining <= RouterLimits.prepareAheadMilliseconds
    else { return withdrawPrepared(session) }
    if let prepared = session.prepared, prepared.entry.id == next.id,
      prepared.request.bitrateKilobits == session.queue.bitrateKilobits
    {
      return
    }
    withdrawPrepared(session)
    guard mayPrepare(next.track.url) else { return }
    prepare(request(for: next, session), next, session)
  }

  private func prepare(_ request: PlayRequest, _ entry: QueueEntry, _ session: RoutedSession) {
    prepare(PreparedPlay(entry: entry, request: request, isClients: false), session, for: .inside({ _ in }))
  }

  /// Sends a prepare once it is on disk, as a play.
  func prepare(_ play: PreparedPlay, _ session: RoutedSession, for requester: Requester) {
    session.prepared = play
    let take = { [weak self] (event: EngineEvent) in
      requester.answer(.event(event))
      self?.prepareAnswered(session, event, tag: play.request.tag)
    }
    let answered = Requester.inside(take, askedBy: requester.webSocket, client: requester.client)
    let verdict = Result { () throws(RequestError) in try plan(play.request, heldAt: 0) }
    save(session, for: requester) { [self] unwritten in
      if let unwritten { return requester.refuseUnwritten(unwritten, sessionID: session.id) }
      guard let prepared = session.prepared, prepared.request.tag == play.request.tag else {
        return requester.refuse(.overtaken, sessionID: session.id)
      }
      do throws(RequestError) {
        guard try verdict.get() else { throw .isTried }
        let requestID = try send(.session(session.id, .prepare(play.request)), for: answered)
        session.prepared?.requestID = requestID
        state.noteSent(play.request.tag, requestID, of: session)
        if let tag = play.request.tag { crashes.sent(tag) }
      } catch {
        answered.refuse(error.report, sessionID: session.id)
      }
    }
  }

  private func withdrawPrepared(_ session: RoutedSession) {
    guard let prepared = session.prepared else { return }
    session.prepared = nil
    guard !prepared.hasFailed, prepared.requestID != nil else { return }
    session.withdraw(prepared.request.tag)
    if let tag = prepared.request.tag { crashes.ended(tag) }
    state.save(session)
    _ = try? send(.session(session.id, .unprepare), for: .inside({ _ in }))
  }
}

extension EngineEvent.Body {
  /// Whether a session goes another way after it.
  fileprivate var movesQueue: Bool {
    switch self {
    case .extracting, .ready, .ended, .error: true
    default: false
    }
  }
}

extension ErrorReport {
  /// A play or prepare that was not sent, since another came while it was written down.
  static let overtaken = ErrorReport(
    .superseded, "another command took its place before this was done", stage: .command)
}
