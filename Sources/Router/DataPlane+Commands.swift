import NIOCore
import WireProtocol

/// What clients ask: one handler for every door.
extension DataPlane {
  /// A WebSocket's text message.
  func receive(_ json: [UInt8], from listener: WebSocketListener) {
    let sessionID = listener.request.sessionID
    do {
      let command = try ClientCommand.decode(json, sessionID: sessionID)
      let asker = Asker.webSocket(listener, requestID: command.requestID)
      do {
        try perform(command, for: asker)
      } catch {
        asker.refuse(error.report, sessionID: sessionID)
      }
    } catch {
      Asker.webSocket(listener, requestID: error.requestID).refuse(error.report, sessionID: sessionID)
    }
  }

  /// Does what is asked. The asker is answered now or when the engine has answered.
  func perform(_ command: ClientCommand, for asker: Asker) throws(Refusal) {
    switch command.action {
    case .ping(let t): asker.answer(.pong(t))
    case .queue(let id, let change): try perform(change, on: id, for: asker)
    case .engine(.session(let id, .play(let request))): try play(request, on: id, for: asker)
    case .engine(.session(let id, .volume(let level))): try setVolume(level, on: id, for: asker)
    case .engine(let action): try send(action, for: asker)
    }
  }

  /// Sends a command under a request ID of the Router's own.
  ///
  /// - Returns: that ID.
  @discardableResult
  func send(_ action: EngineCommand.Action, for asker: Asker) throws(Refusal) -> String {
    guard let id = pending.add(asker, now: .now()) else {
      throw Refusal(
        .engineUnavailable, "\(RouterLimits.maximumPendingRequests) commands wait for the engine",
        hint: "try again")
    }
    do {
      try link.send(EngineCommand(requestID: id, action: action))
    } catch {
      _ = pending.take(id)
      throw error
    }
    return id
  }

  func perform(_ action: TrackQueue.Action, _ session: RoutedSession) throws(Refusal) {
    switch action {
    case .stop: try send(.session(session.id, .stop), for: .router)
    case .play(let entry):
      let request = PlayRequest(url: entry.url, volume: session.volume)
      let id = try send(.session(session.id, .play(request)), for: .router)
      session.asked(toPlay: request, requestID: id)
    }
  }

  func announceQueue(_ session: RoutedSession, except listener: WebSocketListener?) {
    guard session.listenerCount > 0 else { return }
    let message = QueueMessage(sessionID: session.id, requestID: nil, queue: session.queue.view)
    session.broadcast(WebSocketFrames.text(JSON.encode(message)), except: listener)
  }

  private func play(_ request: PlayRequest, on id: SessionID, for asker: Asker) throws(Refusal) {
    let session = try store.session(id)
    defer { store.removeIfUnused(session) }
    let requestID = try send(.session(id, .play(request)), for: asker)
    session.asked(toPlay: request, requestID: requestID)
  }

  /// A level for what plays is the engine's to change; one for what comes next is kept here.
  private func setVolume(_ level: Double, on id: SessionID, for asker: Asker) throws(Refusal) {
    let session = try store.session(id)
    defer { store.removeIfUnused(session) }
    guard session.keepVolume(level) else {
      try send(.session(id, .volume(level)), for: asker)
      return
    }
    let status = EngineEvent(.status(session.snapshot), sessionID: id)
    asker.answer(.event(status))
    session.broadcast(WebSocketFrames.text(status.encoded()), except: asker.webSocket)
  }

  private func perform(
    _ change: ClientCommand.QueueChange, on id: SessionID, for asker: Asker
  ) throws(Refusal) {
    let session = try store.session(id)
    defer { store.removeIfUnused(session) }
    let before = session.queue.view
    // A copy, so that a change the engine cannot follow is not made at all.
    var queue = session.queue
    if let action = try Self.apply(change, to: &queue, isSessionIdle: session.isIdle) {
      try perform(action, session)
    }
    session.queue = queue
    asker.answer(.queue(id, queue.view))
    if queue.view != before { announceQueue(session, except: asker.webSocket) }
  }

  private static func apply(
    _ change: ClientCommand.QueueChange, to queue: inout TrackQueue, isSessionIdle: Bool
  ) throws(Refusal) -> TrackQueue.Action? {
    switch change {
    case .add(let url): return try queue.add(url: url, isSessionIdle: isSessionIdle)
    case .remove(let id): try queue.remove(id: id)
    case .clear: queue.clear()
    case .show: break
    case .skip: return try queue.skip(isSessionIdle: isSessionIdle)
    }
    return nil
  }
}
