import Logging
import NIOCore
import ServiceSupport
import WireProtocol

/// Performs what sessions' playback wants done (`Playback.Action`), in order, and tells it what became of it.
extension DataPlane {
  /// Has a session's playback take a step, and performs what follows from it.
  func run<Failure: Error>(
    _ session: RoutedSession,
    _ step: (inout Playback, inout Playback.Context) throws(Failure) -> Void
  ) throws(Failure) {
    for action in try actions(session, step) { perform(action, session) }
  }

  /// The context is gone before anything is performed, which changes what it has copies of.
  private func actions<Failure: Error>(
    _ session: RoutedSession,
    _ step: (inout Playback, inout Playback.Context) throws(Failure) -> Void
  ) throws(Failure) -> [Playback.Action] {
    var context = Playback.Context(
      positionMilliseconds: session.countedMilliseconds, nowMilliseconds: Self.nowMilliseconds,
      isEngineConnected: fleet.isAnyEstablished, crashes: crashes, tags: tags)
    try step(&session.playback, &context)
    tags = context.tags
    return session.playback.takeActions()
  }

  private func perform(_ action: Playback.Action, _ session: RoutedSession) {
    switch action {
    case .send(let command, let requesterID): send(command, session, for: requesterID)
    case .write(let write, let requesterID): self.write(write, session, for: requesterID)
    case .save: state.save(session)
    case .loadQueue(let step): withQueue(of: session) { [self] in run(session) { $0.resume(step, &$1) } }
    case .startRetryTimer: startRetryTimer(session)
    case .willAnswer(let requesterID, .event(let event)): requester(requesterID).willAnswer(.event(event))
    case .willAnswer(let requesterID, .queue(let view)):
      requester(requesterID).willAnswer(.queue(session.id, view))
    case .answer(let requesterID, let event):
      let requester = takeRequester(requesterID)
      requester.answer(.event(event))
      session.broadcast(WebSocketFrames.text(event.encoded()), except: requester.webSocket)
    case .answerQueue(let requesterID, let answer, let hasChanged):
      answerQueue(answer, hasChanged: hasChanged, session, for: takeRequester(requesterID))
    case .refuse(let requesterID, let report):
      takeRequester(requesterID).refuse(report, sessionID: session.id)
    case .refuseUnwritten(let requesterID, let report):
      takeRequester(requesterID).refuseUnwritten(report, sessionID: session.id)
    case .broadcast(let event): session.broadcast(WebSocketFrames.text(event.encoded()))
    case .announceQueue(let view): announce(EncodedQueue(view), of: session)
    case .saveThenAnnounceQueue(let view):
      state.save(session) { [self] in announce(EncodedQueue(view), of: session) }
    case .report(let event):
      fleet.engines[session.engine]?.unconfirmed.remove(session.id)
      take(event, nil, session)
    case .hold(let play, let requesterID): hold(play, session, for: requesterID)
    case .releaseHeld: release(session.id)
    case .playBegan(let tag): noteBegun(tag)
    case .playEnded(let tag): crashes.ended(tag)
    case .note(let happening): state.note(happening, of: session)
    case .followed(let body): station.follow(body, session)
    case .logResumption(let request):
      logger.info(
        "going on with \(request.url) at \(request.startMilliseconds) ms",
        metadata: ["session": "\(session.id)"])
    }
  }

  // MARK: Requesters

  /// Keeps who is to be answered, until that is done or handed to the engine's answer.
  func requesterID(_ requester: Requester) -> RequesterID {
    requesterCount += 1
    let requesterID = RequesterID(number: requesterCount)
    requesters[requesterID] = requester
    return requesterID
  }

  func requester(_ requesterID: RequesterID?) -> Requester {
    requesterID.flatMap { requesters[$0] } ?? .router
  }

  func takeRequester(_ requesterID: RequesterID?) -> Requester {
    requesterID.flatMap { requesters.removeValue(forKey: $0) } ?? .router
  }

  // MARK: To the engine

  func send(
    _ command: EngineCommand.SessionAction, _ session: RoutedSession, for requesterID: RequesterID?
  ) {
    guard !waitsForHandover(command, session, for: requesterID) else { return }
    let requester = requester(requesterID)
    do throws(RequestError) {
      let requestID = try send(
        .session(session.id, command), for: answering(command, session, requester, isOwn: requesterID == nil))
      _ = takeRequester(requesterID)
      run(session) { playback, _ in playback.sent(command, requestID: requestID) }
      if let tag = command.playedTag { crashes.sent(tag) }
    } catch {
      let report = error.report
      run(session) { $0.notSent(command, for: requesterID, report, &$1) }
    }
  }

  /// Whom the engine's answer is for.
  private func answering(
    _ command: EngineCommand.SessionAction, _ session: RoutedSession, _ requester: Requester, isOwn: Bool
  ) -> Requester {
    switch command {
    case .prepare(let request):
      let take = { [weak self] (event: EngineEvent) in
        requester.answer(.event(event))
        // An engine that is away has not refused it: its return says what has become of it.
        guard case .error = event.body, let self, fleet.engines[session.engine]?.isEstablished == true
        else { return }
        run(session) { $0.prepareAnswered(tag: request.tag, isError: true, &$1) }
      }
      return .routerStep(take, onBehalfOf: requester.webSocket, client: requester.client)
    // All who listen hear of these.
    case .play, .volume: return requester
    default: return isOwn ? .routerStep({ _ in }) : requester
    }
  }

  /// Sends a command under a request ID of the Router's own.
  ///
  /// - Returns: that ID.
  @discardableResult
  func send(_ action: EngineCommand.Action, for requester: Requester) throws(RequestError) -> String {
    try send(action, to: engine(for: action), for: requester)
  }

  /// Sends a command to a certain engine.
  @discardableResult
  func send(
    _ action: EngineCommand.Action, to engine: RoutedEngine, for requester: Requester
  ) throws(RequestError) -> String {
    let epoch = try epoch(for: action)
    guard let id = engine.pending.add(requester, now: .now()) else {
      throw RequestError(
        .engineUnavailable, "\(RouterLimits.maximumPendingRequests) commands wait for the engine",
        hint: "try again")
    }
    do {
      try engine.link.send(
        EngineCommand(requestID: id, client: requester.client.wireName, epoch: epoch, action: action))
    } catch {
      _ = engine.pending.take(id)
      throw error
    }
    return id
  }

  private func engine(for action: EngineCommand.Action) throws(RequestError) -> RoutedEngine {
    switch action {
    case .session(let id, .play):
      guard let session = store.sessions[id] else { return try fleet.anyEngine() }
      return try fleet.place(session)
    case .session(let id, _), .burst(let id, _):
      guard let session = store.sessions[id] else { return try fleet.anyEngine() }
      return try fleet.engine(of: session)
    case .media, .artwork, .resolve, .render: return try fleet.anyEngine()
    }
  }

  private func startRetryTimer(_ session: RoutedSession) {
    let wait = TimeAmount.milliseconds(RouterLimits.retryMilliseconds)
    eventLoop.assumeIsolated().scheduleTask(in: wait) { [weak self, weak session] in
      guard let self, let session, store.sessions[session.id] === session else { return }
      run(session) { $0.retry(&$1) }
    }
  }

  // MARK: To the disk

  private func write(_ write: Playback.Write, _ session: RoutedSession, for requesterID: RequesterID?) {
    let clearance = clearance(for: write)
    let done = { [self] (failure: ErrorReport?) in
      run(session) { $0.written(write, for: requesterID, clearance: clearance, failure: failure, &$1) }
    }
    let client = requester(requesterID).client
    guard client == .router else { return state.save(session, for: client, then: done) }
    state.save(session) { done(nil) }
  }

  /// What is about to be sent is written in the same transaction.
  private func clearance(for write: Playback.Write) -> Playback.Clearance {
    do throws(RequestError) {
      switch write {
      case .play(let request, let heldAt): return try plan(request, heldAt: heldAt) ? .send : .wait
      case .prepare(let request): return try plan(request, heldAt: 0) ? .send : .wait
      default: return .send
      }
    } catch {
      return .refuse(error.report)
    }
  }

  // MARK: To listeners

  private func answerQueue(
    _ answer: QueueView, hasChanged: Bool, _ session: RoutedSession, for requester: Requester
  ) {
    var view = answer
    view.added = nil
    let queue = EncodedQueue(view)
    requester.answer(
      .queue(session.id, answer), showing: answer.added == nil ? (queue, of: session) : nil)
    if hasChanged { announce(queue, of: session, except: requester.webSocket) }
  }

  private func announce(
    _ queue: EncodedQueue, of session: RoutedSession, except listener: WebSocketListener? = nil
  ) {
    guard session.listenerCount > 0 else { return }
    session.broadcast(.queue(queue, of: session, requestID: nil), except: listener)
  }
}

extension EngineCommand.SessionAction {
  /// Of a play or prepare.
  fileprivate var playedTag: String? {
    switch self {
    case .play(let request), .prepare(let request): request.tag
    default: nil
    }
  }
}
