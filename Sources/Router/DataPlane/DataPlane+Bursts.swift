import NIOCore
import WireProtocol

/// How those who join come to hear.
extension DataPlane {
  /// Has one who joins hear a session from what it has just played on.
  ///
  /// - Parameter hear: called once, before the packet that follows what it is given: nil where nothing was played, or the
  ///   engine cannot or does not give it.
  func join(_ session: RoutedSession, milliseconds: Int, _ hear: @escaping (SoundBurst?) -> Void) {
    guard session.state == .streaming, milliseconds >= WireLimits.packetDurationMilliseconds, link.givesBursts
    else { return hear(nil) }
    if let asked = session.bursts.first(where: { $0.milliseconds == milliseconds }) { return asked.add(hear) }
    let request = BurstRequest(milliseconds: milliseconds, hear)
    let wait = BurstWait(request: request, session: session)
    guard let id = bursts.add(wait, now: .now()) else { return request.end(nil) }
    session.bursts.append(request)
    do {
      try link.send(
        EngineCommand(
          requestID: id, client: session.creator.wireName,
          action: .burst(session.id, milliseconds: milliseconds)))
    } catch {
      _ = bursts.take(id)
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
  func takeBurst(_ event: EngineEvent) -> Bool {
    let wait = event.requestID.flatMap { bursts.take($0) }
    guard case .burst(let first, let count) = event.body, let id = event.sessionID else {
      // An error.
      if let wait { Self.end(wait, nil) }
      return wait != nil
    }
    store.packets.collectBurst(of: id, from: first, count: count) { burst in
      if let wait { Self.end(wait, burst) }
    }
    return true
  }

  /// The engine has gone.
  func endBursts() {
    store.packets.dropBurst()
    for (_, wait) in bursts.takeAll() { Self.end(wait, nil) }
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
