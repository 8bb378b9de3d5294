import NIOCore
import WireProtocol

/// What clients ask: one handler for every endpoint.
extension DataPlane {
  /// A WebSocket's text message.
  func receive(_ json: [UInt8], from listener: WebSocketListener) {
    let (sessionID, client) = (listener.request.sessionID, listener.request.grant.client)
    let charge = CommandCharge(
      budgets, client, listener, cost: ClientCommand.cost(textByteCount: json.count), reserved: 1)
    do {
      let command = try ClientCommand.decode(json, sessionID: sessionID)
      let requester = Requester.webSocket(listener, requestID: command.requestID, charge)
      charge.add(command.furtherCost(command.session(in: store)))
      do {
        try listener.request.grant.require(command.scope, sessionID)
        try performOnce(command, for: requester)
      } catch {
        requester.refuse(error.report, sessionID: sessionID)
      }
    } catch {
      Requester.webSocket(listener, requestID: error.requestID, charge).refuse(
        error.report, sessionID: sessionID)
    }
  }

  /// Carries out a command. The requester is answered now, or when the engine has answered.
  func perform(_ command: ClientCommand, for requester: Requester) throws(RequestError) {
    switch command.action {
    case .ping(let t): requester.answer(.pong(t))
    case .queue(let id, let command): try perform(command, on: id, for: requester)
    case .engine(.session(let id, .play(let request))) where request.score != nil:
      // None of the queue's, which takes notice when it begins.
      let session = try store.session(id, for: requester.client, limitFactor: requester.limitFactor)
      try sendInOrder(.play(request), session.id, for: requester)
    case .engine(.session(let id, .play(let request))): try play(request, on: id, for: requester)
    case .engine(.session(let id, .prepare(let request))): try prepare(request, on: id, for: requester)
    case .engine(.session(let id, .stop)): try stop(id, for: requester)
    case .engine(.session(let id, .volume(let level))): try setVolume(level, on: id, for: requester)
    case .engine(.session(let id, let action)): try sendInOrder(action, id, for: requester)
    case .engine(.media(let path)): list(path, for: requester)
    case .engine(.resolve(let request)): resolve(request, for: requester)
    case .engine(let action): try send(action, for: requester)
    }
  }

  /// Sends a command after a play of its session that waits to be saved.
  private func sendInOrder(
    _ action: EngineCommand.SessionAction, _ id: SessionID, for requester: Requester
  ) throws(RequestError) {
    guard let session = store.sessions[id] else {
      try send(.session(id, action), for: requester)
      return
    }
    try prepareToWrite(session, for: requester)
    let requesterID = requesterID(requester)
    run(session) { playback, _ in playback.send(action, for: requesterID) }
  }

  /// What is sent after a play is saved with it.
  private func prepareToWrite(_ session: RoutedSession, for requester: Requester) throws(RequestError) {
    if session.playback.isWritingPlay { try state.prepare(session, for: requester.client) }
  }

  /// What is asked for by itself becomes the queue's current entry once it plays.
  private func play(_ request: PlayRequest, on id: SessionID, for requester: Requester) throws(RequestError) {
    try checkIsNotRefused(request.url)
    let session = try store.session(id, for: requester.client, limitFactor: requester.limitFactor)
    defer { store.removeIfUnused(session) }
    let track = try checkedTrack(request, session, for: requester.client)
    let requesterID = requesterID(requester)
    run(session) { $0.play(track, request, for: requesterID, &$1) }
  }

  /// A client's own goes before what the queue has next.
  private func prepare(_ request: PlayRequest, on id: SessionID, for requester: Requester)
    throws(RequestError)
  {
    guard request.score == nil else {
      throw RequestError(
        .invalidCommand, "the field score is for play: the Router prepares what has a url", hint: "play it")
    }
    try checkIsNotRefused(request.url)
    guard let session = store.sessions[id] else {
      _ = try send(.session(id, .prepare(request)), for: requester)
      return
    }
    let track = try checkedTrack(request, session, for: requester.client)
    let requesterID = requesterID(requester)
    run(session) { $0.prepare(track, request, for: requesterID, &$1) }
  }

  /// The track of a client's own play, once there is room for it.
  private func checkedTrack(
    _ request: PlayRequest, _ session: RoutedSession, for client: ClientID
  ) throws(RequestError) -> QueuedTrack {
    let track = try QueuedTrack(url: request.url).checked()
    // It is going to be in the history.
    try requireRoom(for: track.byteCount, in: session)
    try state.prepare(session, for: client)
    return track
  }

  /// What is only deferred is stopped here: the engine does not know of it.
  private func stop(_ id: SessionID, for requester: Requester) throws(RequestError) {
    guard let session = store.sessions[id] else {
      try send(.session(id, .stop), for: requester)
      return
    }
    if session.playback.hasOnlyDeferredPlay {
      try state.prepare(session, for: requester.client)
    } else {
      try prepareToWrite(session, for: requester)
    }
    let requesterID = requesterID(requester)
    run(session) { $0.stop(for: requesterID, $1) }
  }

  /// A level for what plays is the engine's to change; one for what comes next is kept here.
  private func setVolume(_ level: Double, on id: SessionID, for requester: Requester) throws(RequestError) {
    let session = try store.session(id, for: requester.client, limitFactor: requester.limitFactor)
    defer { store.removeIfUnused(session) }
    if session.playback.canKeepVolume {
      try state.prepare(session, for: requester.client)
    } else {
      try prepareToWrite(session, for: requester)
    }
    let requesterID = requesterID(requester)
    run(session) { $0.setVolume(level, for: requesterID, $1) }
  }
}
