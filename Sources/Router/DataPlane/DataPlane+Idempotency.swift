import WireProtocol

/// Where commands come in from every endpoint.
extension DataPlane {
  /// Does what is asked, once for each idempotency key.
  func performOnce(_ command: ClientCommand, for requester: Requester) throws(RequestError) {
    if let id = command.changedSession { try requireHome(of: id) }
    guard let session = sessionToRead(for: command) else {
      return try performNow(command, for: requester)
    }
    withQueue(of: session, for: requester.client) { [self] requestError in
      do throws(RequestError) {
        if let requestError { throw requestError }
        try performNow(command, for: requester)
      } catch {
        requester.refuse(error.report, sessionID: session.id)
      }
    }
  }

  private func performNow(_ command: ClientCommand, for requester: Requester) throws(RequestError) {
    guard let key = command.idempotencyKey, let sessionID = command.changedSession else {
      return try perform(command, for: requester)
    }
    let intent = Intent(sessionID, key)
    let verdict = try idempotency.begin(
      intent, fingerprint: Fingerprint.of(command.action), waiter: requester, client: requester.client,
      nowMilliseconds: state.clock.milliseconds())
    switch verdict {
    case .waits: break
    case .repeated(let json): requester.answer(try Self.answer(json))
    case .perform:
      let idempotent = Requester.idempotent(requester, intent, self)
      do {
        try perform(command, for: idempotent)
      } catch {
        idempotent.refuse(error.report, sessionID: sessionID)
      }
    }
  }

  /// Gives the answer to everyone who asked, once it is on disk.
  func finish(_ intent: Intent, _ answer: Requester.Answer, for requester: Requester) {
    let give = { [self] in
      let waiters = idempotency.finish(intent)
      for requester in [requester] + waiters { requester.answer(answer) }
    }
    keep(answer, to: intent) ? state.write(then: give) : give()
  }

  /// Has an answer written with what is written next.
  ///
  /// - Returns: whether it was not kept before, and is now.
  @discardableResult
  func keep(_ answer: Requester.Answer, to intent: Intent) -> Bool {
    guard answer.isFinal,
      let kept = idempotency.keep(
        answer.keptJSON, to: intent, nowMilliseconds: state.clock.milliseconds())
    else { return false }
    state.add(kept, forgotten: idempotency.takeForgotten())
    return true
  }

  /// What the answer says could not be written.
  func retract(_ intent: Intent) {
    idempotency.retract(intent)
    state.retract(intent)
  }

  private static func answer(_ json: [UInt8]) throws(RequestError) -> Requester.Answer {
    do {
      return try JSON.decode(Versioned<Requester.Answer>.self, from: json).value
    } catch {
      throw RequestError(.internal, "the answer that was kept cannot be read: \(error)")
    }
  }
}

extension Requester.Answer {
  /// The answer as it is stored: of a long queue without its tracks, so that one session's answers do not push out
  /// all others'.
  fileprivate var keptJSON: [UInt8] {
    let json = JSON.versionedBytes(self)
    guard case .queue(let id, var view) = self, json.count > RouterLimits.keptAnswerByteCount else {
      return json
    }
    view.tracks = []
    return JSON.versionedBytes(Self.queue(id, view))
  }

  /// An error that may pass is not: the command is to be tried again.
  fileprivate var isFinal: Bool {
    guard case .event(let event) = self, case .error(let report) = event.body else { return true }
    // What kills the engine is tried again after a while.
    guard report.code != .sourceCrashesEngine else { return false }
    return report.code.httpStatus < 500
  }
}

extension ClientCommand {
  /// The session that it changes; nil where it reads alone, so that repeating it does no harm.
  fileprivate var changedSession: SessionID? {
    switch action {
    case .engine(.session(_, .status)), .engine(.session(_, .why)), .queue(_, .show), .queue(_, .history): nil
    case .engine(.session(let id, _)), .queue(let id, _): id
    case .engine, .ping: nil
    }
  }

  /// The session whose queue must be in memory before it is carried out.
  var sessionWithQueue: SessionID? {
    if case .queue(let id, _) = action { id } else { changedSession }
  }
}
