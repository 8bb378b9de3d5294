import Collections

/// The order of what waits.
extension TrackQueue {
  /// Room between neighbours, so that thousands of moves fit before all ranks must be reassigned.
  private static let rankStep: Int64 = 1 << 32

  /// Moves one that waits to another place among those that wait; beyond the end is the end.
  package mutating func move(id: String, to position: Int) throws(RequestError) {
    let index = try index(of: id)
    let target = min(position, waiting.count - 1)
    guard index != target else { return }
    let entry = waiting.remove(at: index).entry
    guard let rank = ranks(1, at: target)?.first else {
      waiting.insert(Waiting(entry: entry, rank: 0), at: target)
      return dealRanks()
    }
    waiting.insert(Waiting(entry: entry, rank: rank), at: target)
    changes.append(.moved(id: id, rank: rank))
  }

  package mutating func shuffle() {
    var generator = SystemRandomNumberGenerator()
    shuffle(using: &generator)
  }

  package mutating func shuffle(using generator: inout some RandomNumberGenerator) {
    waiting.shuffle(using: &generator)
    dealRanks()
  }

  /// - Throws: `notFound` where none that waits has this name.
  func index(of id: String) throws(RequestError) -> Int {
    if let index = waiting.firstIndex(where: { $0.entry.id == id }) { return index }
    throw RequestError(
      .notFound, "no queue entry \(id.quoted) waits", hint: "queue lists those that do")
  }

  mutating func insert(_ entries: [QueueEntry], at index: Int) {
    guard !entries.isEmpty else { return }
    waitingByteCount += entries.reduce(0) { $0 + $1.byteCount }
    guard let ranks = ranks(entries.count, at: index) else {
      for entry in entries { changes.append(.waits(entry, rank: 0)) }
      waiting.insert(contentsOf: entries.map { Waiting(entry: $0, rank: 0) }, at: index)
      return dealRanks()
    }
    for (entry, rank) in zip(entries, ranks) { changes.append(.waits(entry, rank: rank)) }
    waiting.insert(contentsOf: zip(entries, ranks).map(Waiting.init(entry:rank:)), at: index)
  }

  @discardableResult
  mutating func take(at index: Int) -> QueueEntry {
    let entry = waiting.remove(at: index).entry
    waitingByteCount -= entry.byteCount
    changes.append(.left(id: entry.id))
    return entry
  }

  /// Ranks for entries between two neighbours; nil where there is no room.
  private func ranks(_ count: Int, at index: Int) -> [Int64]? {
    let step: Int64
    let before: Int64
    switch (index > 0 ? waiting[index - 1].rank : nil, index < waiting.count ? waiting[index].rank : nil) {
    case (nil, nil): (before, step) = (0, Self.rankStep)
    case (let lower?, nil): (before, step) = (lower, Self.rankStep)
    case (nil, let upper?): (before, step) = (upper - Int64(count + 1) * Self.rankStep, Self.rankStep)
    case (let lower?, let upper?): (before, step) = (lower, (upper - lower) / Int64(count + 1))
    }
    guard step > 0 else { return nil }
    return (1...Int64(count)).map { before + $0 * step }
  }

  private mutating func dealRanks() {
    for index in waiting.indices { waiting[index].rank = Self.dealtRank(at: index) }
    changes.append(.dealt(waiting.map(\.entry.id)))
  }

  package static func dealtRank(at place: Int) -> Int64 { Int64(place) * rankStep }
}
