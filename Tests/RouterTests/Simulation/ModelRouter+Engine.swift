import RouterCore
import WireProtocol

/// What goes to the engine, and what comes from it.
extension ModelRouter {
  mutating func send(_ command: EngineCommand.SessionAction, for requesterID: RequesterID?) {
    guard isConnected else {
      let report = ErrorReport(.engineUnavailable, "no engine", stage: .command)
      return run { $0.notSent(command, for: requesterID, report, &$1) }
    }
    requestCount += 1
    let requestID = "\(startCount)-\(requestCount)"
    var sent = command
    switch command {
    case .prepare(let request): pending[requestID] = .prepare(requesterID, tag: request.tag)
    case .play(var request):
      if fault == .restartsAtZero { request.startMilliseconds = 0 }
      checkPlace(of: request)
      sent = .play(request)
      if let requesterID { pending[requestID] = .requesterID(requesterID) }
    default: if let requesterID { pending[requestID] = .requesterID(requesterID) }
    }
    if fault != .forgetsStop || command != .stop {
      outbox.append((sent, requestID))
    } else if let requesterID {
      answer(requesterID)
      pending[requestID] = nil
    }
    run { playback, _ in playback.sent(command, requestID: requestID) }
  }

  /// What was heard before resumes where it was.
  mutating func checkPlace(of request: PlayRequest) {
    guard let tag = request.tag, let heard = heardMilliseconds[tag], heard != request.startMilliseconds else {
      return
    }
    violations.append(.jumped(from: heard, to: request.startMilliseconds))
  }

  mutating func noteHeard() {
    guard let tag = playback.reported.tag, playback.state != .idle, !playback.isLost else { return }
    heardMilliseconds[tag] =
      playback.state == .streaming ? countedMilliseconds : playback.reported.positionMilliseconds ?? 0
  }

  mutating func receive(_ message: ModelEngine.Message) {
    switch message {
    case .event(let event) where fault == .dropsReplacedEnd && event.isReplaced: break
    case .packets(let count): countedMilliseconds += count * WireLimits.packetDurationMilliseconds
    case .event(let event): report(event)
    }
    noteHeard()
  }

  /// As `DataPlane.engineReported`.
  mutating func report(_ event: EngineEvent) {
    var answered: Pending?
    if case .extracting = event.body {
    } else {
      answered = event.requestID.flatMap { pending.removeValue(forKey: $0) }
    }
    checkOrder(event.body)
    noteReplaced(by: event.body)
    switch event.body {
    case .playing(let anchor), .resumed(let anchor), .rebased(let anchor):
      countedMilliseconds = anchor.positionMilliseconds
    case .seeked(let position, _): countedMilliseconds = position
    default: break
    }
    run { playback, _ in playback.apply(event) }
    switch answered {
    case .requesterID(let requesterID): answer(requesterID, isRefusal: event.isError)
    case .prepare(let requesterID, let tag): answerPrepare(requesterID, tag: tag, isError: event.isError)
    case nil: break
    }
    run { $0.follow(event, &$1) }
    save()
    if case .ready = event.body { run { playback, _ in playback.sendWantedVolume() } }
  }

  /// What plays is about to make room for a client's own play, or for an operator's.
  mutating func noteReplaced(by body: EngineEvent.Body?) {
    let isOperators = if case .extracting(_, nil) = body { true } else { false }
    guard isOperators || playback.plan.starting?.entry != nil || held?.play.entry != nil else { return }
    if let current = playback.plan.queue.current { dismissedAddresses.insert(current.track.url) }
  }

  mutating func answerPrepare(_ requesterID: RequesterID?, tag: String?, isError: Bool) {
    answer(requesterID, isRefusal: isError)
    if isError, isConnected { run { $0.prepareAnswered(tag: tag, isError: true, &$1) } }
  }

  /// Nothing follows an end, and nothing begins beside what plays.
  mutating func checkOrder(_ body: EngineEvent.Body) {
    switch body {
    case .extracting:
      if playback.state != .idle, !playback.isLost { violations.append(.begunBesideAnother) }
    case .ready, .playing, .paused, .resumed, .seeked, .ended:
      if playback.state == .idle { violations.append(.followedEnd("\(body)")) }
    default: break
    }
  }

  mutating func connect(_ hello: Hello) {
    isConnected = true
    let isSame = engineStartedAt == hello.startedAtMilliseconds
    engineStartedAt = hello.startedAtMilliseconds
    // As `StateWriter.saveEngine`: written with what follows, or by itself.
    cargo.transaction.engineStartedAt = engineStartedAt
    defer { writeNext() }
    let wasBusy = !playback.isAtRest
    if let snapshot = hello.sessions.first {
      countedMilliseconds = snapshot.positionMilliseconds ?? 0
      run { $0.reconcile(with: snapshot, &$1) }
      save()
      run { $0.prepareNextIfNeeded(&$1) }
    } else if wasBusy {
      run { $0.engineDoesNotPlay(isSameEngine: isSame, &$1) }
    }
    noteHeard()
  }

  mutating func disconnect() {
    isConnected = false
    outbox = []
    // A client's own that is on its way takes the place of what plays, even one that was overtaken by what is undone.
    if requests.values.contains(where: \.isUnansweredPlay) {
      dismissedAddresses.formUnion([playback.reported.url].compactMap(\.self))
    }
    noteReplaced(by: nil)
    if let released = held {
      held = nil
      playback.isHeld = false
      answer(released.requesterID, isRefusal: true)
      if released.play.entry != nil { run { playback, _ in playback.deferHeld(released.play) } }
    }
    let wasAtRest = playback.isAtRest
    run { $0.loseEngine($1) }
    if !wasAtRest { save() }
    let lost = pending.values
    pending = [:]
    for one in lost {
      switch one {
      case .requesterID(let requesterID): answer(requesterID, isRefusal: true)
      case .prepare(let requesterID, let tag): answerPrepare(requesterID, tag: tag, isError: true)
      }
    }
  }
}

extension EngineEvent {
  fileprivate var isError: Bool {
    if case .error = body { true } else { false }
  }

  fileprivate var isReplaced: Bool {
    if case .ended(.replaced, _) = body { true } else { false }
  }
}
