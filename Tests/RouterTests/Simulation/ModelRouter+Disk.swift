import RouterCore
import WireProtocol

/// The disk, as `StateWriter` writes to it, and the queues that are read from it.
extension ModelRouter {
  mutating func keepUndo() {
    if cargo.undo == nil { cargo.undo = Playback.Undo(playback) }
  }

  mutating func collect() {
    cargo.holdsSession = true
    let changes = playback.plan.queue.takeChanges()
    if !cargo.isAnew { cargo.transaction.changes += changes }
  }

  mutating func save() {
    collect()
    cargo.isOwn = true
    writeNext()
  }

  mutating func writeNext(isRetry: Bool = false) {
    guard underway == nil, !isDiskBroken || isRetry, !cargo.isEmpty else { return }
    if cargo.isAnew {
      cargo.transaction.isCleared = true
      cargo.transaction.changes = playback.plan.queue.allRows
    }
    if cargo.holdsSession {
      cargo.transaction.record = playback.record(countedMilliseconds: countedMilliseconds)
    }
    underway = cargo
    cargo = Cargo()
  }

  mutating func checkpoint() {
    if playback.state == .streaming { cargo.transaction.positionMilliseconds = countedMilliseconds }
    writeNext(isRetry: true)
  }

  /// - Parameter clearance: of the plays and prepares that are written.
  mutating func finishWrite(succeeds: Bool, clearance: Playback.Clearance) {
    guard let carried = underway else { return }
    underway = nil
    isDiskBroken = !succeeds
    if succeeds {
      var transaction = carried.transaction
      if fault == .losesRow, !transaction.isCleared {
        transaction.changes = Array(transaction.changes.dropLast())
      }
      disk.write(transaction)
      for waiter in carried.waiters { tell(waiter, clearance, nil) }
    } else {
      putBack(carried)
    }
    if !isDiskBroken { writeNext() }
  }

  mutating func tell(_ waiter: Waiter, _ clearance: Playback.Clearance, _ failure: ErrorReport?) {
    switch waiter {
    case .own(let write):
      if let write { run { $0.written(write, for: nil, clearance: clearance, &$1) } }
    case .command(let write, let requesterID):
      run { $0.written(write, for: requesterID, clearance: clearance, failure: failure, &$1) }
    }
  }

  mutating func putBack(_ carried: Cargo) {
    let later = cargo
    let undo = carried.undo ?? later.undo
    cargo = Cargo()
    cargo.waiters = later.waiters.filter(\.isOwn)
    cargo.isOwn = later.isOwn || carried.isOwn
    cargo.isAnew = later.isAnew || carried.isAnew
    cargo.holdsSession = later.holdsSession || carried.holdsSession
    cargo.transaction.changes =
      (carried.isAnew ? [] : carried.transaction.changes) + later.transaction.changes
    cargo.transaction.engineStartedAt =
      later.transaction.engineStartedAt ?? carried.transaction.engineStartedAt
    if let undo {
      let isOwn = cargo.isOwn || !undo.since.isEmpty || cargo.isAnew
      playback.undo(to: undo)
      cargo.transaction.changes = []
      cargo.holdsSession = isOwn
      cargo.isAnew = isOwn && playback.isQueueLoaded
      for happening in undo.since { run { $0.repeat(happening, &$1) } }
      run { $0.resumeAfterUndo(&$1) }
    }
    let failure = ErrorReport(.storageFailed, "the disk is full", stage: .command)
    for waiter in carried.waiters + later.waiters.filter({ !$0.isOwn }) { tell(waiter, .send, failure) }
  }

  mutating func load(_ step: DeferredStep) {
    if deferred != nil { return deferred!.append(step) }
    deferred = [step]
  }

  mutating func finishRead() {
    guard let steps = deferred else { return }
    var queue = disk.queue(of: playback.record(countedMilliseconds: countedMilliseconds))
    if fault == .doublesEntry, let entry = queue.waiting.first {
      queue = TrackQueue(
        current: queue.current, waiting: [entry] + queue.waiting, history: Array(queue.history),
        lastPlayedNumber: queue.lastPlayedNumber, loop: queue.loop, bitrateKilobits: nil, lastID: queue.lastID
      )
    }
    playback.load(queue)
    deferred = nil
    for step in steps {
      switch step {
      case .own(let step): if fault != .loadsNothing { run { $0.resume(step, &$1) } }
      case .client(let requesterID): perform(requesterID)
      }
    }
  }

  mutating func unloadIfIdle() {
    guard playback.isAtRest, !playback.isHeld, deferred == nil, playback.isQueueLoaded,
      !cargo.holdsSession, cargo.undo == nil, underway == nil, !playback.plan.queue.hasChangedRows
    else { return }
    playback.unload()
  }
}
