import Logging
import NIOCore
import ServiceSupport
import WireProtocol

/// Collects changes on the data plane's loop and has them written: one transaction at a time, each with everything that has
/// changed during the one before. With several Routers a change is written to the archive first, where the others find it,
/// and then to the disk, from which this Router reads queues.
///
/// A client's change is in effect once it is written: where that fails, its session returns to its former state
/// (`SessionUndo`) and the client gets an error. A change that the engine reports is in effect anyway, and its write is
/// retried.
package final class StateWriter {
  let clock: CumulativeUptimeClock
  /// Called with sessions that returned to their former state. Set once.
  var onFailure: ([SessionUndo]) -> Void = { _ in }
  /// Called with the sessions that are written.
  var onWritten: ([RoutedSession]) -> Void = { _ in }
  /// Called with each session that another Router has written: this one no longer writes it.
  package var onOvertaken: (SessionID) -> Void = { _ in }
  /// Why the state cannot be written; nil while it can.
  package private(set) var problem: String?
  let store: StateStore
  let archive: SessionArchive?
  let eventLoop: any EventLoop
  private let logger: Logger
  var batch = StateBatch()
  var context = WriteContext()
  /// The write in progress.
  var current: (batch: StateBatch, context: WriteContext)?
  /// Called once the write in progress ends.
  var afterwards: [() -> Void] = []
  private var waiting = DiskWaiters()
  private var clockWrittenMilliseconds = 0
  private var isCollecting = false
  /// Set when the Router stops: nothing is written after what there was then.
  private var closing: EventLoopPromise<Void>?
  private var isClosed = false

  package init(
    store: StateStore, archive: SessionArchive? = nil, clock: CumulativeUptimeClock,
    eventLoop: any EventLoop, logger: Logger
  ) {
    self.store = store
    self.archive = archive
    self.clock = clock
    self.eventLoop = eventLoop
    self.logger = logger
  }

  /// Commands that wait for a write.
  var waitingCount: Int { waiting.count }

  /// Whether a change of the session is not written yet, or may be undone. A rejected command leaves an undo state, too.
  func holds(_ id: SessionID) -> Bool {
    [context, current?.context].contains { $0?.sessions[id] != nil || $0?.undos[id] != nil }
  }

  // MARK: For clients

  /// Called before a client's command changes a session.
  ///
  /// - Throws: `overloaded` where too many commands wait.
  package func prepare(_ session: RoutedSession, for client: ClientID) throws(RequestError) {
    try waiting.requireRoom(for: client)
    if context.undos[session.id] == nil { context.undos[session.id] = SessionUndo(session) }
  }

  /// Counts a command that waits for a queue to be read.
  func begin(for client: ClientID) throws(RequestError) { try waiting.enter(client) }
  func end(for client: ClientID) { waiting.leave(client) }

  /// Writes what a client's command has changed of a session.
  ///
  /// - Parameter done: called on the loop once it is on disk, or, with the reason, once all is as before.
  package func save(
    _ session: RoutedSession, for client: ClientID, then done: @escaping (ErrorReport?) -> Void
  ) {
    collect(session)
    waiting.add(client)
    context.waiters.append(.command(session.id, client, done))
    write()
  }

  // MARK: For the Router itself

  /// Writes a session's changes.
  ///
  /// - Parameter done: called on the loop once it is on disk, or could not be written: then it is in effect anyway, `problem`
  ///   says why, and the write is retried.
  package func save(_ session: RoutedSession, then done: (() -> Void)? = nil) {
    collect(session)
    context.changedByRouter.insert(session.id)
    if let done { context.waiters.append(.router(done)) }
    write()
  }

  /// Remembers what stays in effect even if the session's last change is undone, until that change is written.
  func note(_ happening: Playback.Happening, of session: RoutedSession) {
    context.undos[session.id]?.playback.note(happening)
    current?.context.undos[session.id]?.playback.note(happening)
  }

  /// Deletes a session from the disk.
  func forget(_ session: RoutedSession) {
    guard session.touchedMilliseconds > 0, !session.isForgotten else { return }
    batch.cleared.insert(session.id)
    batch.changes[session.id] = nil
    context.sessions[session.id] = nil
    context.fullRewrites[session.id] = nil
    session.isForgotten = true
    write()
  }

  /// Writes the positions of sessions that play, and retries what could not be written.
  package func savePositions(of sessions: some Sequence<RoutedSession>) {
    batch.positions = sessions.filter { $0.state == .streaming }.map {
      ($0.id, $0.snapshot.positionMilliseconds ?? 0)
    }
    let isClockDue =
      clock.milliseconds() - clockWrittenMilliseconds >= RouterLimits.clockCheckpointSeconds * 1_000
    if problem != nil || isClockDue || !batch.isEmpty { write(isRetry: true) }
  }

  /// Writes which engine is connected, in one transaction with the changes that follow from it: a Router that finds the
  /// same engine again considers the sessions that it does not play ended.
  func saveEngine(startedAtMilliseconds: Int, with changes: () -> Void) {
    batch.engineStartedAtMilliseconds = startedAtMilliseconds
    saveTogether(changes)
  }

  /// Writes all changes in one transaction.
  func saveTogether(_ changes: () -> Void) {
    isCollecting = true
    changes()
    isCollecting = false
    write()
  }

  /// Adds to the next write what the engine is opening, which may crash it.
  func add(_ crashes: [String: CrashRecord?]) {
    batch.crashes.merge(crashes) { $1 }
  }

  // MARK: Answers

  /// Adds an answer to the next write.
  func add(_ answer: StoredAnswer, forgotten: [Int]) {
    batch.answers.append(answer)
    batch.forgottenAnswers += forgotten
  }

  func retract(_ intent: Intent) {
    // A failed write may have reached the archive.
    if archive != nil {
      batch.forgottenAnswers += batch.answers.filter { $0.intent == intent }.map(\.number)
    }
    batch.answers.removeAll { $0.intent == intent }
  }

  /// Writes the collected changes.
  ///
  /// - Parameter done: as for the Router's own `save`.
  func write(then done: @escaping () -> Void) {
    context.waiters.append(.router(done))
    write()
  }

  /// Writes the collected changes and nothing after them: then the store can be closed.
  ///
  /// - Returns: fulfilled once they are on disk, or could not be written.
  func close() -> EventLoopFuture<Void> {
    let promise = eventLoop.makePromise(of: Void.self)
    closing = promise
    write(isRetry: true)
    return promise.futureResult
  }

  /// As `StateStore.loadQueue`.
  func readQueue(
    of record: SessionRecord, completion: @escaping @Sendable (Result<LoadedQueue, any Error>) -> Void
  ) {
    store.loadQueue(of: record, completion: completion)
  }

  // MARK: Writing

  private func collect(_ session: RoutedSession) {
    // The changes of its last steps need not be written.
    guard !session.isForgotten else { return }
    session.touchedMilliseconds = clock.milliseconds()
    context.sessions[session.id] = session
    let changes = session.playback.plan.queue.takeChanges()
    guard !changes.isEmpty, context.fullRewrites[session.id] == nil else { return }
    batch.changes[session.id, default: QueueChanges()].append(changes)
    // However often a queue changes while the disk is busy, no more rows are collected than it has.
    let most = session.queue.rowCount + RouterLimits.collectedChangesSlack
    if batch.changes[session.id]!.rowCount > most { rewriteAll(session) }
  }

  private func rewriteAll(_ session: RoutedSession) {
    context.sessions[session.id] = session
    batch.changes[session.id] = nil
    // Where the queue is not in memory, only the session's own row can have changed.
    if session.storedRows == nil { context.fullRewrites[session.id] = session }
  }

  /// - Parameter isRetry: while writes fail, they are retried at checkpoints only.
  func write(isRetry: Bool = false) {
    guard current == nil, !isCollecting, !isClosed, problem == nil || isRetry else { return }
    for (id, session) in context.fullRewrites {
      batch.cleared.insert(id)
      batch.changes[id] = QueueChanges(session.queue.allRows)
    }
    batch.records = context.sessions.values.map(\.record)
    batch.runningMilliseconds = clock.milliseconds()
    current = (batch, context)
    let taken = batch
    batch = StateBatch()
    context = WriteContext()
    let writer = NIOLoopBound(self, eventLoop: eventLoop)
    guard let archive else {
      return store.write(taken) { [eventLoop] result in
        eventLoop.execute { writer.value.written(result) }
      }
    }
    Task { [store, eventLoop] in
      let outcome = await archive.write(taken)
      if let failure = outcome.failure {
        return eventLoop.execute { writer.value.written(.failure(failure), outcome) }
      }
      store.write(taken.without(outcome.overtaken)) { result in
        eventLoop.execute { writer.value.written(result, outcome) }
      }
    }
  }

  private func written(_ result: Result<Void, any Error>, _ outcome: SessionArchive.Outcome? = nil) {
    if let outcome, !outcome.overtaken.isEmpty {
      drop(outcome.overtaken)
      for id in outcome.overtaken { onOvertaken(id) }
    }
    guard let (written, carried) = current else { return }
    current = nil
    switch result {
    case .success:
      if problem != nil { logger.notice("the state can be written again") }
      problem = nil
      clockWrittenMilliseconds = written.runningMilliseconds
      tell(carried.waiters, nil)
      onWritten(Array(carried.sessions.values))
    case .failure(let error):
      let words = "the state cannot be written: \(error)"
      if problem != words { logger.error("\(words)") }
      problem = words
      requeue(
        written, carried, possiblyWritten: outcome?.possiblyWritten ?? [],
        error is ArchiveError ? .unarchived : .unwritten)
    }
    let steps = afterwards
    afterwards = []
    for step in steps { step() }
    // After a failure the next checkpoint retries.
    if problem == nil, !context.sessions.isEmpty || !context.waiters.isEmpty || !batch.isEmpty { write() }
    if let closing, current == nil {
      isClosed = true
      closing.succeed()
    }
  }

  func tell(_ waiters: [WriteContext.Waiter], _ report: ErrorReport?) {
    for waiter in waiters {
      switch waiter {
      case .router(let done): done()
      case .command(_, let client, let done):
        waiting.leave(client)
        done(report)
      }
    }
  }

  /// After a failed write: undoes clients' changes and those made on top of them, and adds the rest to the next write.
  ///
  /// - Parameter possiblyWritten: sessions of which the archive may have the changes nevertheless.
  private func requeue(
    _ written: StateBatch, _ carried: WriteContext, possiblyWritten: Set<SessionID>, _ report: ErrorReport
  ) {
    let later = context
    let undos = later.undos.merging(carried.undos) { $1 }
    context.undos = [:]
    context.waiters = later.waiters.filter { if case .router = $0 { true } else { false } }
    context.fullRewrites.merge(carried.fullRewrites.filter { !$0.value.isForgotten }) { $1 }
    context.changedByRouter.formUnion(carried.changedByRouter)
    batch.engineStartedAtMilliseconds =
      batch.engineStartedAtMilliseconds ?? written.engineStartedAtMilliseconds
    batch.crashes.merge(written.crashes) { newer, _ in newer }
    batch.answers = (written.answers + batch.answers).suffix(RouterLimits.maximumKeptAnswers)
    batch.forgottenAnswers = written.forgottenAnswers + batch.forgottenAnswers
    // Sessions that are rewritten are cleared again then.
    batch.cleared.formUnion(written.cleared.subtracting(carried.fullRewrites.keys))
    for (id, session) in carried.sessions where !session.isForgotten {
      let changes = batch.changes[id]?.list ?? []
      batch.changes[id] = written.changes[id]
      batch.changes[id, default: QueueChanges()].append(changes)
      context.sessions[id] = session
    }
    undo(undos)
    for id in possiblyWritten {
      if let session = carried.sessions[id], !session.isForgotten { rewriteAll(session) }
    }
    tell(carried.waiters + later.waiters.filter { if case .command = $0 { true } else { false } }, report)
  }

  private func undo(_ undos: [SessionID: SessionUndo]) {
    for (id, undo) in undos where !undo.session.isForgotten {
      let isOwn =
        context.changedByRouter.contains(id) || !undo.playback.since.isEmpty
        || context.fullRewrites[id] != nil
      undo.restore()
      batch.changes[id] = nil
      context.sessions[id] = nil
      // The state is now as on disk, unless the engine or the Router has changed it, too.
      if isOwn { rewriteAll(undo.session) }
    }
    onFailure(Array(undos.values))
  }
}
