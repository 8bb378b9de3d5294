import Logging
import NIOCore
import WireProtocol

/// Collects on the data plane's loop what is to be kept, and has it written: one transaction at a time, each
/// with everything that has changed during the one before.
final class StateWriter {
  private let store: StateStore
  private let eventLoop: any EventLoop
  private let logger: Logger
  private var batch = StateBatch()
  /// Sessions whose own row is to be written.
  private var changed: [SessionID: RoutedSession] = [:]
  /// Sessions whose rows on disk are not what was written last: all of them are to be written anew.
  private var unwritten: [SessionID: RoutedSession] = [:]
  /// Those who wait for the next transaction.
  private var waiters: [() -> Void] = []
  private var isWriting = false
  /// Why the state cannot be written; nil while it can.
  private(set) var problem: String?

  init(store: StateStore, eventLoop: any EventLoop, logger: Logger) {
    self.store = store
    self.eventLoop = eventLoop
    self.logger = logger
  }

  /// Writes what has changed of a session.
  ///
  /// - Parameter done: called on the loop once it is on disk, or cannot be brought there: then it is in effect
  ///   all the same, `problem` says why, and it is tried again.
  func save(_ session: RoutedSession, then done: (() -> Void)? = nil) {
    session.touched()
    batch.changes += session.queue.takeChanges().map { (session.id, $0) }
    changed[session.id] = session
    if let done { waiters.append(done) }
    write()
  }

  /// Takes a session off the disk.
  func forget(_ session: RoutedSession) {
    guard session.touchedMilliseconds > 0 else { return }
    batch.cleared.insert(session.id)
    batch.changes.removeAll { $0.session == session.id }
    changed[session.id] = nil
    unwritten[session.id] = nil
    session.isForgotten = true
    write()
  }

  /// Writes how far the sessions that play have come.
  func savePositions(of sessions: some Sequence<RoutedSession>) {
    batch.positions = sessions.filter { $0.state == .streaming }.map {
      ($0.id, $0.snapshot.positionMilliseconds ?? 0)
    }
    if problem != nil || !batch.positions.isEmpty { write() }
  }

  /// Remembers which engine it is.
  func saveEngine(startedAtMilliseconds: Int) {
    batch.engineStartedAtMilliseconds = startedAtMilliseconds
    write()
  }

  /// Has an answer written with what is written next.
  func add(_ answer: KeptAnswer, oldestNumber: Int) {
    batch.answers.append(answer)
    batch.oldestAnswer = oldestNumber
  }

  /// Writes what there is.
  ///
  /// - Parameter done: as of `save`.
  func write(then done: @escaping () -> Void) {
    waiters.append(done)
    write()
  }

  private func write() {
    guard !isWriting else { return }
    isWriting = true
    let sessions = changed
    let waiting = waiters
    let batch = takeBatch()
    let writer = NIOLoopBound(self, eventLoop: eventLoop)
    let context = NIOLoopBound((sessions, waiting), eventLoop: eventLoop)
    store.write(batch) { [eventLoop] result in
      eventLoop.execute {
        let (sessions, waiting) = context.value
        writer.value.written(result, batch, sessions, waiting)
      }
    }
  }

  private func takeBatch() -> StateBatch {
    var taken = batch
    for (id, session) in unwritten {
      taken.cleared.insert(id)
      taken.changes.removeAll { $0.session == id }
      taken.changes += session.queue.allRows.map { (id, $0) }
      changed[id] = session
    }
    taken.records = changed.values.map(\.record)
    batch = StateBatch()
    changed = [:]
    waiters = []
    return taken
  }

  private func written(
    _ result: Result<Void, any Error>, _ written: StateBatch, _ sessions: [SessionID: RoutedSession],
    _ waiting: [() -> Void]
  ) {
    isWriting = false
    switch result {
    case .success:
      if problem != nil { logger.notice("the state can be written again") }
      problem = nil
      unwritten = [:]
    case .failure(let error):
      unwritten.merge(sessions.filter { !$0.value.isForgotten }) { $1 }
      batch.cleared.formUnion(written.cleared)
      batch.engineStartedAtMilliseconds =
        batch.engineStartedAtMilliseconds ?? written.engineStartedAtMilliseconds
      batch.answers = (written.answers + batch.answers).suffix(RouterLimits.maximumKeptAnswers)
      let words = "the state cannot be written: \(error)"
      if problem != words { logger.error("\(words)") }
      problem = words
    }
    for done in waiting { done() }
    // After a failure the next change or checkpoint tries again.
    if problem == nil, !changed.isEmpty || !waiters.isEmpty || !batch.isEmpty { write() }
  }
}
