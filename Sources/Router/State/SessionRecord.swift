import WireProtocol

/// What is kept of a session besides the rows of its queue: one row, written at every change.
package struct SessionRecord: Sendable, Equatable {
  package var id: SessionID
  package var volume = 1.0
  package var loop = LoopMode.off
  package var bitrateKilobits: Int?
  package var current: QueueEntry?
  /// The highest number an entry has had, and a track of the history.
  package var lastID = 0
  package var lastPlayedNumber = 0
  /// What plays or is about to; nil while idle.
  package var playing: PlayRequest?
  /// Whether the engine has begun with it.
  package var hasBegun = false
  package var prepared: PreparedPlay?
  package var positionMilliseconds = 0
  /// When it was last changed, by the Router's running time (`CumulativeUptimeClock`).
  package var touchedMilliseconds = 0
  /// Who has made it.
  package var creator = ClientID.router
  /// The queue's other rows, which are read when they are needed.
  package var rows = StoredRows()

  package init(id: SessionID) {
    self.id = id
  }

  /// The queue without its other rows.
  package var queue: TrackQueue {
    TrackQueue(
      current: current, waiting: [], history: [], lastPlayedNumber: lastPlayedNumber, loop: loop,
      bitrateKilobits: bitrateKilobits, lastID: lastID)
  }
}

/// How much there is of a queue on disk.
package struct StoredRows: Sendable, Equatable {
  package var waitingCount = 0
  package var historyCount = 0
  /// As `TrackQueue.rowsByteCount` counts.
  package var byteCount = 0

  package init() {}

  init(_ queue: TrackQueue) {
    waitingCount = queue.waiting.count
    historyCount = queue.history.count
    byteCount = queue.rowsByteCount
  }

  package var isEmpty: Bool { waitingCount == 0 && historyCount == 0 }
}

/// Everything that is read at the start. It takes neither time nor memory in proportion to the queues.
package struct SavedState: Sendable {
  package var sessions: [SessionRecord] = []
  /// The oldest first.
  package var answers: [StoredAnswer] = []
  /// When the engine that was connected last had started.
  package var engineStartedAtMilliseconds: Int?
  /// What the engine was opening, and which addresses may have crashed it.
  package var crashes: [CrashRecord] = []
  /// The Router's running time, which goes on.
  package var clock = CumulativeUptimeClock(base: 0)
  /// What could not be read and was put aside.
  package var unreadable: [Unreadable] = []
}

/// What one transaction writes, in this order.
package struct StateBatch: Sendable {
  /// Sessions whose rows are to be gone, before anything is written.
  package var cleared: Set<SessionID> = []
  /// Sessions that are another Router's: their rows here are to be gone, and nothing else.
  package var lost: Set<SessionID> = []
  package var changes: [SessionID: QueueChanges] = [:]
  package var records: [SessionRecord] = []
  package var positions: [(session: SessionID, milliseconds: Int)] = []
  package var engineStartedAtMilliseconds: Int?
  /// By address; nil where nothing is kept of it any more.
  package var crashes: [String: CrashRecord?] = [:]
  package var answers: [StoredAnswer] = []
  /// Answers with these numbers are to be gone.
  package var forgottenAnswers: [Int] = []
  package var runningMilliseconds = 0

  package init() {}

  package var isEmpty: Bool {
    cleared.isEmpty && lost.isEmpty && changes.isEmpty && records.isEmpty && positions.isEmpty
      && engineStartedAtMilliseconds == nil && crashes.isEmpty && answers.isEmpty && forgottenAnswers.isEmpty
  }
}

extension StateBatch {
  /// The same without anything of sessions that are another Router's.
  func without(_ ids: Set<SessionID>) -> StateBatch {
    guard !ids.isEmpty else { return self }
    var batch = self
    batch.lost.formUnion(ids)
    batch.cleared.subtract(ids)
    for id in ids { batch.changes[id] = nil }
    batch.records.removeAll { ids.contains($0.id) }
    batch.positions.removeAll { ids.contains($0.session) }
    batch.answers.removeAll { ids.contains($0.intent.sessionID) }
    return batch
  }
}

/// What is to be written of one queue, in order.
package struct QueueChanges: Sendable {
  package private(set) var list: [TrackQueue.Change] = []
  /// How many rows they write.
  package private(set) var rowCount = 0

  package init(_ changes: [TrackQueue.Change] = []) {
    append(changes)
  }

  package mutating func append(_ changes: [TrackQueue.Change]) {
    // Every rank is dealt anew: what was said of ranks before is over.
    if changes.contains(where: \.isDeal) {
      list.removeAll(where: \.isOfRanksAlone)
      rowCount = list.count
    }
    list += changes
    rowCount += changes.reduce(0) { $0 + $1.rowCount }
  }
}

extension TrackQueue.Change {
  fileprivate var isDeal: Bool {
    if case .dealt = self { true } else { false }
  }

  fileprivate var isOfRanksAlone: Bool {
    switch self {
    case .moved, .dealt: true
    default: false
    }
  }

  fileprivate var rowCount: Int {
    if case .dealt(let ids) = self { ids.count } else { 1 }
  }
}
