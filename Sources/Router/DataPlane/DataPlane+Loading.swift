import NIOCore
import ServiceSupport
import WireProtocol

/// Queues are read from the disk when they are needed, and leave the memory when they are not.
extension DataPlane {
  /// Does what needs a session's whole queue, for the engine or the Router itself: now, or once it is read.
  func withQueue(of session: RoutedSession, _ step: @escaping () -> Void) {
    session.usedAt = .now()
    guard session.storedRows != nil else { return step() }
    let count = session.deferred?.count ?? 0
    guard count < RouterLimits.maximumDeferredSteps else {
      return logger.error(
        "dropping an event: \(count) already wait for the queue to be loaded",
        metadata: ["session": "\(session.id)"])
    }
    read(session, then: DeferredStep { _ in step() })
  }

  /// Does what needs a session's whole queue, for a client.
  ///
  /// - Parameter step: told why where the queue cannot be read.
  func withQueue(of session: RoutedSession, for client: ClientID, _ step: @escaping (RequestError?) -> Void) {
    session.usedAt = .now()
    guard session.storedRows != nil else { return step(nil) }
    do throws(RequestError) {
      try state.begin(for: client)
    } catch {
      return step(error)
    }
    do throws(RequestError) {
      try requireMemory(for: session.playback.rows.byteCount, in: session, orElse: .overloaded)
    } catch {
      state.end(for: client)
      return step(error)
    }
    read(session, then: DeferredStep(client: client, run: step))
  }

  /// The session of a command, where its queue must be read first.
  func sessionToRead(for command: ClientCommand) -> RoutedSession? {
    guard let session = command.sessionWithQueue.flatMap({ store.sessions[$0] }), session.storedRows != nil
    else { return nil }
    return session
  }

  private func read(_ session: RoutedSession, then step: DeferredStep) {
    guard session.deferred == nil else {
      session.deferred?.append(step)
      return
    }
    session.deferred = [step]
    readAgain(session)
  }

  private func readAgain(_ session: RoutedSession) {
    let context = NIOLoopBound((self, session), eventLoop: eventLoop)
    state.readQueue(of: session.record) { [eventLoop] result in
      eventLoop.execute {
        let (plane, session) = context.value
        plane.took(result, of: session)
      }
    }
  }

  private func took(_ result: Result<LoadedQueue, any Error>, of session: RoutedSession) {
    let steps = session.deferred ?? []
    for step in steps { if let client = step.client { state.end(for: client) } }
    switch result {
    case .success(let loaded):
      session.playback.load(loaded.queue)
      session.usedAt = .now()
      session.deferred = nil
      report(loaded.unreadable, of: session.id.description)
      for step in steps { step.run(nil) }
      // Others may have been read at the same time.
      try? requireMemory(for: 0, in: session, orElse: .overloaded)
    case .failure(let error):
      let requestError = RequestError(
        .storageFailed, "the queue of the session \(session.id) cannot be read: \(error)",
        hint: "the disk of the Router's state needs its operator")
      logger.error("\(requestError.report.message)", metadata: ["session": "\(session.id)"])
      // What the engine has said waits for the disk.
      let own = steps.filter { $0.client == nil }
      session.deferred = own.isEmpty ? nil : own
      for step in steps where step.client != nil { step.run(requestError) }
      guard !own.isEmpty else { return }
      eventLoop.assumeIsolated().scheduleTask(in: .milliseconds(RouterLimits.retryMilliseconds)) { [self] in
        readAgain(session)
      }
    }
  }

  func report(_ unreadable: [Unreadable], of session: String) {
    guard !unreadable.isEmpty else { return }
    logger.error(
      "\(unreadable.count) stored values of a session cannot be decoded; they were moved to the table \"unreadable\"",
      metadata: ["session": "\(session)"])
  }

  // MARK: Room

  /// Refuses what has no room on the disk or in memory.
  func requireRoom(for byteCount: Int, in session: RoutedSession) throws(RequestError) {
    try store.accounts.requireRoom(for: byteCount, of: session.creator)
    try requireMemory(for: byteCount, in: session, orElse: .queueFull)
  }

  /// Makes room in memory with queues that nobody uses.
  private func requireMemory(
    for byteCount: Int, in needed: RoutedSession, orElse code: ErrorCode
  ) throws(RequestError) {
    guard !store.accounts.hasRoomInMemory(for: byteCount) else { return }
    let unused = store.sessions.values.filter { $0 !== needed && canUnload($0) }
    for session in unused.sorted(by: { $0.usedAt < $1.usedAt }) {
      session.playback.unload()
      if store.accounts.hasRoomInMemory(for: byteCount) { return }
    }
    throw RequestError(
      code,
      "the queues in use take \(store.accounts.total.memory) bytes of \(RouterLimits.memoryQueueByteCount) in "
        + "memory: there is no room for \(byteCount) more",
      hint: "try again when other sessions have ended")
  }

  /// Lets go of a queue that nobody has used for a while.
  func unloadIfIdle(_ session: RoutedSession, now: NIODeadline) {
    guard now - session.usedAt >= .seconds(RouterLimits.idleQueueSeconds), canUnload(session) else { return }
    session.playback.unload()
  }

  private func canUnload(_ session: RoutedSession) -> Bool {
    session.isAbandoned && session.storedRows == nil && session.queue.rowCount > 0
      && !session.queue.hasChangedRows && !state.holds(session.id)
  }

  // MARK: What could not be written

  /// Clients' commands could not be written: what has happened meanwhile is repeated from where the sessions were
  /// before.
  func repeatWhatHappened(after undos: [SessionUndo]) {
    for undo in undos where !undo.session.isForgotten {
      for happening in undo.playback.since { run(undo.session) { $0.repeat(happening, &$1) } }
      run(undo.session) { $0.resumeAfterUndo(&$1) }
      store.removeIfUnused(undo.session)
    }
  }
}
