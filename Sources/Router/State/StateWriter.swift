import Logging
import NIOCore
import ServiceSupport
import WireProtocol

/// Collects on the data plane's loop what is to be kept, and has it written: one transaction at a time, each
/// with everything that has changed during the one before. With several Routers it is written to the archive first, where
/// the others find it, and then to the disk, from which this one reads queues.
///
/// What a client asks for is in effect once it is written: where that fails, its session returns to what it was
/// (`SessionUndo`) and the client is told. What the engine reports is in effect all the same, and is tried again.
package final class StateWriter {
  let clock: CumulativeUptimeClock
  /// Takes sessions back to what they were. Set once.
  var onFailure: ([SessionUndo]) -> Void = { _ in }
  /// Told the sessions that are written.
  var onWritten: ([RoutedSession]) -> Void = { _ in }
  /// Told each session that another Router has written: nothing of it is written here any more.
  package var onOvertaken: (SessionID) -> Void = { _ in }
  /// Why the state cannot be written; nil while it can.
  package private(set) var problem: String?
  let store: StateStore
  let archive: SessionArchive?
  let eventLoop: any EventLoop
  private let logger: Logger
  var batch = StateBatch()
  var cargo = StateCargo()
  /// What is being written.
  var underway: (batch: StateBatch, cargo: StateCargo)?
  /// Done once what is being written is.
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

  /// How many commands wait.
  var waitingCount: Int { waiting.count }

  /// Whether something of the session is not confirmed by the disk yet, or may be undone: a refused command too leaves
  /// what it would have been undone to.
  func holds(_ id: SessionID) -> Bool {
    [cargo, underway?.cargo].contains { $0?.sessions[id] != nil || $0?.undos[id] != nil }
  }

  // MARK: For clients

  /// Called before a client's command changes a session.
  ///
  /// - Throws: `overloaded` where too many commands wait.
  package func prepare(_ session: RoutedSession, for client: ClientID) throws(RequestError) {
    try waiting.requireRoom(for: client)
    if cargo.undos[session.id] == nil { cargo.undos[session.id] = SessionUndo(session) }
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
    cargo.waiters.append(.command(session.id, client, done))
    write()
  }

  // MARK: For the Router itself

  /// Writes what has changed of a session.
  ///
  /// - Parameter done: called on the loop once it is on disk, or cannot be brought there: then it is in effect
  ///   all the same, `problem` says why, and it is tried again.
  package func save(_ session: RoutedSession, then done: (() -> Void)? = nil) {
    collect(session)
    cargo.own.insert(session.id)
    if let done { cargo.waiters.append(.own(done)) }
    write()
  }

  /// Remembers what is in effect whatever becomes of the session's last change, until that is confirmed.
  func note(_ happening: Playback.Happening, of session: RoutedSession) {
    cargo.undos[session.id]?.playback.note(happening)
    underway?.cargo.undos[session.id]?.playback.note(happening)
  }

  /// Takes a session off the disk.
  func forget(_ session: RoutedSession) {
    guard session.touchedMilliseconds > 0, !session.isForgotten else { return }
    batch.cleared.insert(session.id)
    batch.changes[session.id] = nil
    cargo.sessions[session.id] = nil
    cargo.anew[session.id] = nil
    session.isForgotten = true
    write()
  }

  /// Writes how far the sessions that play have come, and tries again what could not be written.
  package func savePositions(of sessions: some Sequence<RoutedSession>) {
    batch.positions = sessions.filter { $0.state == .streaming }.map {
      ($0.id, $0.snapshot.positionMilliseconds ?? 0)
    }
    let isClockDue =
      clock.milliseconds() - clockWrittenMilliseconds >= RouterLimits.clockCheckpointSeconds * 1_000
    if problem != nil || isClockDue || !batch.isEmpty { write(isRetry: true) }
  }

  /// Remembers which engine it is, in one transaction with what follows from that: a Router that finds the engine
  /// unchanged takes the sessions that it does not play for ended.
  func saveEngine(startedAtMilliseconds: Int, with changes: () -> Void) {
    batch.engineStartedAtMilliseconds = startedAtMilliseconds
    saveTogether(changes)
  }

  /// Writes all of what is changed in one transaction.
  func saveTogether(_ changes: () -> Void) {
    isCollecting = true
    changes()
    isCollecting = false
    write()
  }

  /// Has what the engine is opening, and may die of, written with what is written next.
  func add(_ crashes: [String: CrashRecord?]) {
    batch.crashes.merge(crashes) { $1 }
  }

  // MARK: Answers

  /// Has an answer written with what is written next.
  func add(_ answer: StoredAnswer, forgotten: [Int]) {
    batch.answers.append(answer)
    batch.forgottenAnswers += forgotten
  }

  func retract(_ intent: Intent) {
    // A write that has failed may have brought it to the archive.
    if archive != nil {
      batch.forgottenAnswers += batch.answers.filter { $0.intent == intent }.map(\.number)
    }
    batch.answers.removeAll { $0.intent == intent }
  }

  /// Writes what there is.
  ///
  /// - Parameter done: as of the Router's own `save`.
  func write(then done: @escaping () -> Void) {
    cargo.waiters.append(.own(done))
    write()
  }

  /// Writes what there is, and nothing after it: the store can be closed then.
  ///
  /// - Returns: fulfilled once it is on disk, or cannot be brought there.
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
    // What has come of its last steps is nobody's to read.
    guard !session.isForgotten else { return }
    session.touchedMilliseconds = clock.milliseconds()
    cargo.sessions[session.id] = session
    let changes = session.playback.plan.queue.takeChanges()
    guard !changes.isEmpty, cargo.anew[session.id] == nil else { return }
    batch.changes[session.id, default: QueueChanges()].append(changes)
    // However often a queue is changed while the disk is busy, no more is collected than it has rows.
    let most = session.queue.rowCount + RouterLimits.collectedChangesSlack
    if batch.changes[session.id]!.rowCount > most { writeAnew(session) }
  }

  private func writeAnew(_ session: RoutedSession) {
    cargo.sessions[session.id] = session
    batch.changes[session.id] = nil
    // Of a queue that is not in memory only the session's own row can have changed.
    if session.storedRows == nil { cargo.anew[session.id] = session }
  }

  /// - Parameter isRetry: while nothing can be written, it is tried at each checkpoint alone.
  func write(isRetry: Bool = false) {
    guard underway == nil, !isCollecting, !isClosed, problem == nil || isRetry else { return }
    for (id, session) in cargo.anew {
      batch.cleared.insert(id)
      batch.changes[id] = QueueChanges(session.queue.allRows)
    }
    batch.records = cargo.sessions.values.map(\.record)
    batch.runningMilliseconds = clock.milliseconds()
    underway = (batch, cargo)
    let taken = batch
    batch = StateBatch()
    cargo = StateCargo()
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
    guard let (written, carried) = underway else { return }
    underway = nil
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
      putBack(written, carried, ahead: outcome?.ahead ?? [], error is ArchiveError ? .unarchived : .unwritten)
    }
    let steps = afterwards
    afterwards = []
    for step in steps { step() }
    // After a failure the next checkpoint tries again.
    if problem == nil, !cargo.sessions.isEmpty || !cargo.waiters.isEmpty || !batch.isEmpty { write() }
    if let closing, underway == nil {
      isClosed = true
      closing.succeed()
    }
  }

  func tell(_ waiters: [StateCargo.Waiter], _ report: ErrorReport?) {
    for waiter in waiters {
      switch waiter {
      case .own(let done): done()
      case .command(_, let client, let done):
        waiting.leave(client)
        done(report)
      }
    }
  }

  /// Nothing of it is on disk: what clients asked for is undone, with what has come on top of it since, and the rest
  /// is to be written with the next.
  ///
  /// - Parameter ahead: sessions of which the archive may have what was to be written, all the same.
  private func putBack(
    _ written: StateBatch, _ carried: StateCargo, ahead: Set<SessionID>, _ report: ErrorReport
  ) {
    let later = cargo
    let undos = later.undos.merging(carried.undos) { $1 }
    cargo.undos = [:]
    cargo.waiters = later.waiters.filter { if case .own = $0 { true } else { false } }
    cargo.anew.merge(carried.anew.filter { !$0.value.isForgotten }) { $1 }
    cargo.own.formUnion(carried.own)
    batch.engineStartedAtMilliseconds =
      batch.engineStartedAtMilliseconds ?? written.engineStartedAtMilliseconds
    batch.crashes.merge(written.crashes) { newer, _ in newer }
    batch.answers = (written.answers + batch.answers).suffix(RouterLimits.maximumKeptAnswers)
    batch.forgottenAnswers = written.forgottenAnswers + batch.forgottenAnswers
    // Those that were to be written anew are cleared again then.
    batch.cleared.formUnion(written.cleared.subtracting(carried.anew.keys))
    for (id, session) in carried.sessions where !session.isForgotten {
      let changes = batch.changes[id]?.list ?? []
      batch.changes[id] = written.changes[id]
      batch.changes[id, default: QueueChanges()].append(changes)
      cargo.sessions[id] = session
    }
    undo(undos)
    for id in ahead {
      if let session = carried.sessions[id], !session.isForgotten { writeAnew(session) }
    }
    tell(carried.waiters + later.waiters.filter { if case .command = $0 { true } else { false } }, report)
  }

  private func undo(_ undos: [SessionID: SessionUndo]) {
    for (id, undo) in undos where !undo.session.isForgotten {
      let isOwn = cargo.own.contains(id) || !undo.playback.since.isEmpty || cargo.anew[id] != nil
      undo.restore()
      batch.changes[id] = nil
      cargo.sessions[id] = nil
      // What is left is what is on disk, unless the engine or the Router had its part in it.
      if isOwn { writeAnew(undo.session) }
    }
    onFailure(Array(undos.values))
  }
}
