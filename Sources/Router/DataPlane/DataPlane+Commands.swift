import NIOCore
import WireProtocol

/// What clients ask: one handler for every door.
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

  /// Does what is asked. The requester is answered now or when the engine has answered.
  func perform(_ command: ClientCommand, for requester: Requester) throws(RequestError) {
    switch command.action {
    case .ping(let t): requester.answer(.pong(t))
    case .queue(let id, let command): try perform(command, on: id, for: requester)
    case .engine(.session(let id, .play(let request))) where request.score != nil:
      // None of the queue's, which takes notice when it begins.
      try sendInOrder(
        .session(
          store.session(id, for: requester.client, limitFactor: requester.limitFactor).id, .play(request)),
        for: requester
      )
    case .engine(.session(let id, .play(let request))): try play(request, on: id, for: requester)
    case .engine(.session(let id, .prepare(let request))): try prepare(request, on: id, for: requester)
    case .engine(.session(let id, .unprepare)):
      try sendInOrder(.session(id, .unprepare), for: requester) { $0.prepared = nil }
    case .engine(.session(let id, .stop)): try stop(id, for: requester)
    case .engine(.session(let id, .volume(let level))): try setVolume(level, on: id, for: requester)
    case .engine(.media(let path)): list(path, for: requester)
    case .engine(.resolve(let request)): resolve(request, for: requester)
    case .engine(let action): try sendInOrder(action, for: requester)
    }
  }

  /// Sends a command behind a play of its session that waits to be written down.
  ///
  /// - Parameter change: what is changed of the session once the command is accepted.
  private func sendInOrder(
    _ action: EngineCommand.Action, for requester: Requester, _ change: (RoutedSession) -> Void = { _ in }
  ) throws(RequestError) {
    guard case .session(let id, _) = action, let session = store.sessions[id],
      let starting = session.starting,
      starting.requestID == nil
    else {
      try send(action, for: requester)
      if case .session(let id, _) = action, let session = store.sessions[id] { change(session) }
      return
    }
    try state.prepare(session, for: requester.client)
    change(session)
    save(session, for: requester) { [self] unwritten in
      if let unwritten { return requester.refuseUnwritten(unwritten, sessionID: id) }
      do throws(RequestError) {
        try send(action, for: requester)
      } catch {
        session.isStopping = false
        requester.refuse(error.report, sessionID: id)
      }
    }
  }

  /// Writes what has changed of a session.
  ///
  /// - Parameter done: told why where it was a client's and could not be written, so that it is not in effect.
  func save(_ session: RoutedSession, for requester: Requester, then done: @escaping (ErrorReport?) -> Void) {
    guard requester.client == .router else { return state.save(session, for: requester.client, then: done) }
    state.save(session) { done(nil) }
  }

  /// Sends a command under a request ID of the Router's own.
  ///
  /// - Returns: that ID.
  @discardableResult
  func send(_ action: EngineCommand.Action, for requester: Requester) throws(RequestError) -> String {
    guard let id = pending.add(requester, now: .now()) else {
      throw RequestError(
        .engineUnavailable, "\(RouterLimits.maximumPendingRequests) commands wait for the engine",
        hint: "try again")
    }
    do {
      try link.send(EngineCommand(requestID: id, client: requester.client.wireName, action: action))
    } catch {
      _ = pending.take(id)
      throw error
    }
    return id
  }

  /// What is asked for by itself becomes the queue's current entry once it plays.
  private func play(_ request: PlayRequest, on id: SessionID, for requester: Requester) throws(RequestError) {
    try checkIsNotRefused(request.url)
    let session = try store.session(id, for: requester.client, limitFactor: requester.limitFactor)
    defer { store.removeIfUnused(session) }
    let (entry, request) = try tagged(request, session, for: requester.client)
    begin(StartingPlay(request: request, entry: entry), session, for: requester)
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
    let (entry, request) = try tagged(request, session, for: requester.client)
    prepare(PreparedPlay(entry: entry, request: request, isClients: true), session, for: requester)
  }

  /// Names a client's own play, once there is room for it.
  private func tagged(
    _ request: PlayRequest, _ session: RoutedSession, for client: ClientID
  ) throws(RequestError) -> (QueueEntry, PlayRequest) {
    let track = try QueuedTrack(url: request.url).checked()
    // It is going to be in the history.
    try requireRoom(for: track.byteCount, in: session)
    try state.prepare(session, for: client)
    let entry = session.queue.newEntry(track)
    var request = request
    request.tag = newTag(for: entry)
    return (entry, request)
  }

  /// What is only owed is stopped here: the engine does not know of it.
  private func stop(_ id: SessionID, for requester: Requester) throws(RequestError) {
    guard let session = store.sessions[id], session.state == .idle || session.isLost, session.owed != nil
    else {
      try sendInOrder(.session(id, .stop), for: requester) { $0.isStopping = true }
      return release(id)
    }
    try state.prepare(session, for: requester.client)
    session.owed = nil
    release(id)
    let ended = lostEnd(of: session, .stopped)
    let (playback, wasLost) = (session.playback, session.isLost)
    session.apply(ended.body)
    _ = session.queue.ended(.stopped)
    requester.willAnswer(.event(ended))
    save(session, for: requester) { [self] unwritten in
      if let unwritten {
        session.takeBack(playback, isLost: wasLost)
        return requester.refuseUnwritten(unwritten, sessionID: id)
      }
      announce(session.encodedQueue, of: session)
      requester.answer(.event(ended))
      session.broadcast(WebSocketFrames.text(ended.encoded()), except: requester.webSocket)
    }
  }

  /// A level for what plays is the engine's to change; one for what comes next is kept here.
  private func setVolume(_ level: Double, on id: SessionID, for requester: Requester) throws(RequestError) {
    let session = try store.session(id, for: requester.client, limitFactor: requester.limitFactor)
    defer { store.removeIfUnused(session) }
    guard session.canKeepVolume else { return try sendInOrder(.session(id, .volume(level)), for: requester) }
    try state.prepare(session, for: requester.client)
    session.keepVolume(level)
    let status = EngineEvent(.status(session.snapshot), sessionID: id)
    requester.willAnswer(.event(status))
    save(session, for: requester) { unwritten in
      if let unwritten { return requester.refuseUnwritten(unwritten, sessionID: id) }
      requester.answer(.event(status))
      session.broadcast(WebSocketFrames.text(status.encoded()), except: requester.webSocket)
    }
  }
}
