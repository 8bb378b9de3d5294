import RouterCore

/// What is on disk of one session: its row and the rows of its queue, as `StateStore` writes them.
struct ModelDisk {
  private(set) var record: SessionRecord?
  private(set) var engineStartedAt: Int?
  private var waiting: [String: (entry: QueueEntry, rank: Int64)] = [:]
  private var played: [Int: QueueEntry] = [:]

  /// What one transaction writes.
  struct Transaction {
    var isCleared = false
    var changes: [TrackQueue.Change] = []
    var record: SessionRecord?
    var positionMilliseconds: Int?
    var engineStartedAt: Int?
  }

  mutating func write(_ transaction: Transaction) {
    if transaction.isCleared { (waiting, played) = ([:], [:]) }
    for change in transaction.changes { apply(change) }
    if let record = transaction.record { self.record = record }
    if let position = transaction.positionMilliseconds { record?.positionMilliseconds = position }
    engineStartedAt = transaction.engineStartedAt ?? engineStartedAt
  }

  private mutating func apply(_ change: TrackQueue.Change) {
    switch change {
    case .waits(let entry, let rank): waiting[entry.id] = (entry, rank)
    case .moved(let id, let rank): waiting[id]?.rank = rank
    case .dealt(let ids):
      for (place, id) in ids.enumerated() { waiting[id]?.rank = TrackQueue.dealtRank(at: place) }
    case .left(let id): waiting[id] = nil
    case .leftAll: waiting = [:]
    case .played(let entry, let number): played[number] = entry
    case .forgotten(let number): played[number] = nil
    }
  }

  func queue(of record: SessionRecord) -> TrackQueue {
    TrackQueue(
      current: record.current,
      waiting: waiting.values.sorted { $0.rank < $1.rank }.map {
        TrackQueue.Waiting(entry: $0.entry, rank: $0.rank)
      },
      history: played.sorted { $0.key < $1.key }.map(\.value), lastPlayedNumber: record.lastPlayedNumber,
      loop: record.loop, bitrateKilobits: record.bitrateKilobits, lastID: record.lastID)
  }
}
