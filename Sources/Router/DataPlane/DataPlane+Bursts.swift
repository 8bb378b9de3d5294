import NIOCore
import WireProtocol

/// How those who join come to hear.
extension DataPlane {
  /// Has one who joins hear a session from what it has just played on.
  ///
  /// - Parameter hear: called once, before the packet that follows what it is given: nil where nothing was played, or the
  ///   engine cannot or does not give it.
  func join(_ session: RoutedSession, milliseconds: Int, _ hear: @escaping (SoundBurst?) -> Void) {
    guard session.state == .streaming, milliseconds >= WireLimits.packetDurationMilliseconds,
      let engine = fleet.engines[session.engine], engine.link.givesBursts
    else { return hear(nil) }
    if let asked = session.bursts.first(where: { $0.milliseconds == milliseconds }) { return asked.add(hear) }
    let request = BurstRequest(milliseconds: milliseconds, hear)
    let wait = BurstWait(request: request, session: session)
    guard let id = engine.bursts.add(wait, now: .now()) else { return request.end(nil) }
    session.bursts.append(request)
    do {
      try engine.link.send(
        EngineCommand(
          requestID: id, client: session.creator.wireName, epoch: homes?.epoch(of: session.id),
          action: .burst(session.id, milliseconds: milliseconds)))
    } catch {
      _ = engine.bursts.take(id)
      return Self.end(wait, nil)
    }
    eventLoop.assumeIsolated().scheduleTask(in: .milliseconds(RouterLimits.burstAnswerMilliseconds)) {
      Self.end(wait, nil)
    }
  }

  /// Takes the engine's answer, and has the packets that follow it collected, whether or not somebody still waits: they
  /// are none of what the others hear.
  ///
  /// - Returns: whether the event is one.
  func takeBurst(_ event: EngineEvent, _ engine: RoutedEngine) -> Bool {
    let wait = event.requestID.flatMap { engine.bursts.take($0) }
    guard case .burst(let first, let count) = event.body, let id = event.sessionID else {
      // An error.
      if let wait { Self.end(wait, nil) }
      return wait != nil
    }
    // A session that is not known has nobody who waits.
    let next = store.sessions[id]?.nextSequence ?? 0
    engine.link.burst.collect(of: id, from: first, count: count, before: next) { burst in
      if let wait { Self.end(wait, burst) }
    }
    return true
  }

  /// The engine has gone.
  func endBursts(of engine: RoutedEngine) {
    engine.link.burst.drop()
    for (_, wait) in engine.bursts.takeAll() { Self.end(wait, nil) }
  }

  private static func end(_ wait: BurstWait, _ burst: SoundBurst?) {
    wait.session.bursts.removeAll { $0 === wait.request }
    wait.request.end(burst)
  }
}

/// Whom the engine's answer is for.
struct BurstWait {
  let request: BurstRequest
  let session: RoutedSession
}
