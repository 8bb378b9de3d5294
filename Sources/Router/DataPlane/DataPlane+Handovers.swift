import NIOCore
import WireProtocol

/// Moves what an engine plays that stops to others, without a gap: another one opens the track and stands by, and then
/// begins with the packet at which this one ends.
extension DataPlane {
  private static let intervalMilliseconds: Int64 = 100
  /// Before a session that could not be moved is tried again.
  private static let retryMilliseconds: Int64 = 1_000

  /// Begins to move what an engine plays.
  func engineStops(_ engine: RoutedEngine) {
    guard !engine.isStopping else { return }
    engine.isStopping = true
    moveSessions(from: engine)
  }

  private func moveSessions(from engine: RoutedEngine) {
    guard fleet.engines[engine.number] === engine else { return }
    for session in sessions(of: engine) where handovers[session.id] == nil && !unmovable.contains(session.id)
    {
      guard handovers.count < RouterLimits.maximumHandovers else { break }
      open(session, from: engine)
    }
    after(Self.intervalMilliseconds) { $0.moveSessions(from: engine) }
  }

  private func after(_ milliseconds: Int64, _ step: @escaping (DataPlane) -> Void) {
    eventLoop.assumeIsolated().scheduleTask(in: .milliseconds(milliseconds)) { [weak self] in
      if let self { step(self) }
    }
  }

  /// Has another engine open what a session plays.
  private func open(_ session: RoutedSession, from source: RoutedEngine) {
    guard source.isEstablished, let target = fleet.successor(of: source),
      let standby = wantedStandby(of: session),
      case .send = crashes.verdict(standby.request.url, tag: standby.request.tag, now: Self.nowMilliseconds)
    else { return }
    handoverCount += 1
    let handover = Handover(number: handoverCount, source: source, target: target, standby: standby)
    handovers[session.id] = handover
    let action = EngineCommand.SessionAction.standBy(
      standby.request, positionMilliseconds: standby.positionMilliseconds)
    ask(target, action, session, handover) { plane, event in
      guard case .ready = event.body else {
        if case .error(let report) = event.body, report.code.meansNoRoom { target.isFull = true }
        return plane.giveUp(session)
      }
      plane.attemptSwitch(session, handover.number)
    }
    after(Handover.openingSeconds * 1_000) { plane in
      guard let late = plane.handovers[session.id], late.number == handover.number, late.attempts == 0 else {
        return
      }
      plane.giveUp(session)
    }
  }

  private func wantedStandby(of session: RoutedSession) -> Playback.Standby? {
    session.playback.standby(countedMilliseconds: session.countedMilliseconds)
  }

  /// Tells both engines of the packet, unless the other one is not that far yet.
  private func attemptSwitch(_ session: RoutedSession, _ number: Int) {
    guard var handover = handovers[session.id], handover.number == number else { return }
    guard let standby = wantedStandby(of: session), standby.request == handover.standby.request else {
      return giveUp(session)
    }
    handover.stage = .switching(isAccepted: false)
    handover.attempts += 1
    handovers[session.id] = handover
    // A session that is paused is handed over at once.
    let lead = session.state == .streaming ? Handover.leadPackets : 0
    let leadMilliseconds = lead * WireLimits.packetDurationMilliseconds
    // What is live has places of its own at each engine.
    let position =
      session.playback.position(countedMilliseconds: session.countedMilliseconds) + leadMilliseconds
    let due =
      session.route.pointee.counter.next.dueNanoseconds + UInt64(lead) * WireLimits.packetDurationNanoseconds
    let takeOver = EngineCommand.SessionAction.takeOver(
      positionMilliseconds: position, dueNanoseconds: lead > 0 ? handover.target.timeOfItsClock(due) : nil)
    ask(handover.target, takeOver, session, handover) { plane, event in
      if case .error(let report) = event.body {
        return report.code == .invalidState ? plane.attemptLater(session) : plane.giveUp(session)
      }
      plane.handovers[session.id]?.stage = .switching(isAccepted: true)
      plane.ask(handover.source, .handOver(positionMilliseconds: position), session, handover) {
        plane, event in
        if case .error = event.body { plane.giveUp(session) }
      }
    }
  }

  private func attemptLater(_ session: RoutedSession) {
    guard let handover = handovers[session.id], handover.attempts < Handover.maximumAttempts else {
      return giveUp(session)
    }
    let waiting = handover.waiting
    handovers[session.id]?.stage = .opening
    handovers[session.id]?.waiting = []
    sendAll(waiting, session)
    after(Handover.attemptMilliseconds) { $0.attemptSwitch(session, handover.number) }
  }

  /// Asks one of both engines. What it answers is of interest while the handover lasts.
  private func ask(
    _ engine: RoutedEngine, _ action: EngineCommand.SessionAction, _ session: RoutedSession,
    _ handover: Handover,
    _ take: @escaping (DataPlane, EngineEvent) -> Void
  ) {
    let answered = { [weak self] (event: EngineEvent) in
      guard let self, handovers[session.id]?.number == handover.number else { return }
      take(self, event)
    }
    do throws(RequestError) {
      try send(
        .session(session.id, action), to: engine, for: .routerStep(answered, client: session.creator))
    } catch {
      answered(EngineEvent(.error(error.report), sessionID: session.id))
    }
  }

  /// It stays where it is, for now.
  private func giveUp(_ session: RoutedSession) {
    guard let handover = handovers.removeValue(forKey: session.id) else { return }
    stop(session.id, at: handover.target)
    unmovable.insert(session.id)
    after(Self.retryMilliseconds) { $0.unmovable.remove(session.id) }
    sendAll(handover.waiting, session)
  }

  // MARK: The switch

  /// Has a command wait while its session is between two engines.
  ///
  /// - Returns: whether it waits.
  func waitsForHandover(
    _ command: EngineCommand.SessionAction, _ session: RoutedSession, for requesterID: RequesterID?
  ) -> Bool {
    guard case .switching = handovers[session.id]?.stage else { return false }
    switch command {
    case .status, .why: return false
    default:
      handovers[session.id]?.waiting.append((command, requesterID))
      return true
    }
  }

  private func sendAll(_ waiting: [Handover.Waiting], _ session: RoutedSession) {
    for (command, requesterID) in waiting { send(command, session, for: requesterID) }
  }

  /// Takes what says that a session has come to the other engine: the end of the one, or the beginning at the other.
  ///
  /// - Returns: whether nobody else is to hear of it.
  func takeHandover(_ event: EngineEvent, _ engine: RoutedEngine) -> Bool {
    guard let session = event.sessionID.flatMap({ store.sessions[$0] }) else { return false }
    guard let handover = handovers[session.id] else { return takeUnexpectedMove(event, engine, session) }
    guard case .switching = handover.stage else { return false }
    switch event.body {
    case .ended(.moved, _) where engine === handover.source:
      complete(handover, session)
      return true
    case .ended where engine === handover.source:
      giveUp(session)
      return false
    case .rebased where engine === handover.target:
      complete(handover, session)
      // What it has left is behind the packet that comes now.
      stop(session.id, at: handover.source)
      return false
    default: return false
    }
  }

  /// The Router that was the session's home before has moved it.
  private func takeUnexpectedMove(_ event: EngineEvent, _ engine: RoutedEngine, _ session: RoutedSession)
    -> Bool
  {
    guard case .ended(.moved, _) = event.body else { return false }
    if session.engine == engine.number {
      fleet.release(session, to: store.firstEngine)
      locateEngine(of: session.id) {}
    }
    return true
  }

  private func complete(_ handover: Handover, _ session: RoutedSession) {
    store.packets.completeMessages(of: session)
    handovers[session.id] = nil
    guard fleet.engines[handover.target.number] === handover.target else {
      fleet.release(session, to: store.firstEngine)
      resume([session])
      return sendAll(handover.waiting, session)
    }
    fleet.assign(session, to: handover.target)
    statistics.handedOverSessions += 1
    run(session) { $0.handedOver(&$1) }
    if session.volume != handover.standby.request.volume {
      run(session) { playback, _ in playback.send(.volume(session.volume), for: nil) }
    }
    sendAll(handover.waiting, session)
  }

  /// A session is another Router's from now on, which asks the engines where it is.
  func dropHandover(of id: SessionID) {
    for (_, requesterID) in handovers.removeValue(forKey: id)?.waiting ?? [] {
      takeRequester(requesterID).refuse(RequestError.moved(id).report, sessionID: id)
    }
  }

  // MARK: Engines that go

  /// An engine is away. What was about to come to the other one is there.
  func endHandovers(of engine: RoutedEngine) {
    for (id, handover) in handovers {
      guard let session = store.sessions[id] else { continue }
      switch handover.stage {
      case .switching(isAccepted: true):
        if engine === handover.source { complete(handover, session) }
      case .opening, .switching(isAccepted: false):
        if engine === handover.source || engine === handover.target { giveUp(session) }
      }
    }
  }
}
