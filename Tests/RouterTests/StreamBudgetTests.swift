import RouterCore
import Testing
import WireProtocol

@Suite struct `What waits for event streams` {
  private let greedy = ClientID(subject: "greedy", address: nil)
  private let calm = ClientID(subject: "calm", address: nil)
  private let mebibyte = 1_048_576

  @Test func `counts a piece once for all, and once for each client`() {
    var budget = StreamBudget()
    for _ in 0..<240 { budget.hold(1, byteCount: 10 * mebibyte, client: greedy) }
    budget.hold(1, byteCount: 10 * mebibyte, client: calm)
    #expect(budget.heldByteCount == 10 * mebibyte)
    for _ in 0..<240 { budget.release(1, client: greedy) }
    #expect(budget.heldByteCount == 10 * mebibyte)
    budget.release(1, client: calm)
    #expect(budget.heldByteCount == 0)
    // What is released twice was not held.
    budget.release(1, client: calm)
    #expect(budget.heldByteCount == 0)
  }

  @Test func `gives everyone one piece, and a share besides`() {
    var budget = StreamBudget()
    #expect(budget.hasRoom(for: 1, byteCount: 20 * mebibyte, client: greedy))
    budget.hold(1, byteCount: 20 * mebibyte, client: greedy)
    #expect(budget.hasRoom(for: 1, byteCount: 20 * mebibyte, client: greedy))
    #expect(!budget.hasRoom(for: 2, byteCount: 9 * mebibyte, client: greedy))
    #expect(budget.hasRoom(for: 2, byteCount: 8 * mebibyte, client: greedy))
    budget.hold(2, byteCount: 8 * mebibyte, client: greedy)
    #expect(!budget.hasRoom(for: 3, byteCount: 1, client: greedy))
    #expect(budget.hasRoom(for: 3, byteCount: 4 * mebibyte, client: calm))
  }

  @Test func `has a few bytes left for those who have little`() {
    var budget = StreamBudget(byteLimit: 20 * mebibyte)
    budget.hold(1, byteCount: 20 * mebibyte, client: greedy)
    #expect(!budget.hasRoom(for: 2, byteCount: 2 * mebibyte, client: calm))
    #expect(budget.hasRoom(for: 2, byteCount: mebibyte, client: calm))
    budget.hold(2, byteCount: mebibyte, client: calm)
    #expect(!budget.hasRoom(for: 3, byteCount: 1, client: calm))
    // The greedy one's own piece is there already.
    #expect(budget.hasRoom(for: 1, byteCount: 20 * mebibyte, client: calm))
    for number in 3..<10 {
      budget.hold(number, byteCount: mebibyte, client: ClientID(subject: "\(number)", address: nil))
    }
    #expect(!budget.hasRoom(for: 99, byteCount: mebibyte, client: ClientID(subject: "late", address: nil)))
  }
}

@Suite struct `A row that is fair between clients` {
  private let one = ClientID(subject: "1", address: nil)
  private let other = ClientID(subject: "2", address: nil)

  @Test func `takes them in turns, and each one's in order`() {
    var row = RoundRobinQueue<Int>()
    for number in 0..<4 { row.append(number, of: one) }
    row.append(10, of: other)
    row.append(11, of: other)
    var taken: [Int] = []
    while let next = row.popFirst(where: { _, _ in true }) { taken.append(next) }
    #expect(taken == [0, 10, 1, 11, 2, 3])
    #expect(row.isEmpty && row.count == 0 && !row.contains(one))
  }

  @Test func `passes over those who may not, and keeps their place`() {
    var row = RoundRobinQueue<Int>()
    for number in 0..<3 { row.append(number, of: one) }
    row.append(10, of: other)
    let others = row.popFirst { client, _ in client == other }
    #expect(others == 10)
    let second = row.popFirst { _, number in number == 2 }
    #expect(second == 2)
    let none = row.popFirst { _, _ in false }
    #expect(none == nil)
    row.removeAll(of: one) { $0 == 0 }
    let first = row.popFirst { _, _ in true }
    #expect(first == 1 && row.isEmpty)
    row.removeAll(of: one) { _ in true }
  }
}

@Suite struct `Rates by key` {
  private let second: UInt64 = 1_000_000_000

  @Test func `are many times the usual with a factor`() {
    var buckets = KeyedBuckets<String>(.init(burst: 2, perSecond: 1), maximumCount: 10)
    for _ in 0..<20 { #expect(buckets.take("bot", factor: 10, now: second) == 0) }
    #expect(buckets.take("bot", factor: 10, now: second) == 0.1)
    #expect(buckets.take("bot", factor: 10, now: second + second / 10) == 0)
    for _ in 0..<2 { #expect(buckets.take("family", now: second) == 0) }
    #expect(buckets.take("family", now: second) == 1)
    buckets.giveBack("family", now: second)
    #expect(buckets.take("family", now: second) == 0)
    buckets.giveBack("nobody", now: second)
  }

  @Test func `forget the one that has used least`() {
    var buckets = KeyedBuckets<Int>(.init(burst: 3, perSecond: 1), maximumCount: 2)
    for _ in 0..<3 { #expect(buckets.take(1, now: second) == 0) }
    for number in 2..<50 { #expect(buckets.take(number, now: second) == 0) }
    // Anyone who is used up stays so, however many others come.
    #expect(buckets.take(1, now: second) > 0)
  }
}

@Suite struct `Permits` {
  private let greedy = ClientID(subject: "greedy", address: nil)
  private let calm = ClientID(subject: "calm", address: nil)

  @Test func `are one a client, and some wait`() {
    var permits = FairPermits(limit: 2, perClient: 1, waitingPerClient: 2)
    #expect(permits.ask(for: greedy) == .granted)
    #expect(permits.ask(for: greedy) == .waits(1))
    #expect(permits.ask(for: greedy) == .waits(2))
    #expect(permits.ask(for: greedy) == .refused)
    #expect(permits.ask(for: calm) == .granted)
    #expect(permits.ask(for: ClientID.router) == .waits(3))
    permits.giveUp(1)
    #expect(permits.end(for: calm) == [3])
    #expect(permits.end(for: greedy) == [2])
    #expect(permits.end(for: greedy) == [])
    #expect(permits.end(for: .router) == [])
    #expect(permits.ask(for: greedy) == .granted)
  }
}

@Suite struct `Beds of one client` {
  @Test func `are so many, and then another listener's`() throws {
    var shares = BedShares()
    var grant = Grant.everything(from: "192.0.2.1")
    let other = Grant.everything(from: "192.0.2.2")
    for number in 0..<RouterLimits.bedsPerClient {
      #expect(shares.begin(try SessionID("\(number)"), for: [grant]) == grant.client)
    }
    let more = try SessionID("\(10_000)")
    #expect(shares.begin(more, for: [grant]) == nil)
    #expect(shares.begin(more, for: [grant, other]) == other.client)
    // One that begins anew is not counted twice.
    #expect(shares.begin(try SessionID("\(0)"), for: [grant]) == grant.client)
    shares.end(try SessionID("\(1)"))
    shares.end(try SessionID("\(1)"))
    #expect(shares.begin(try SessionID("\(20_000)"), for: [grant]) == grant.client)
    #expect(shares.begin(try SessionID("\(20_001)"), for: [grant]) == nil)
    grant.limitFactor = 10
    #expect(shares.begin(try SessionID("\(20_001)"), for: [grant]) == grant.client)
  }
}
