import Logging
import NIOCore
import NIOEmbedded
import RouterCore
import Testing

private let second: UInt64 = 1_000_000_000

@Suite struct `A token bucket` {
  private static let rate = TokenBucket.Rate(burst: 10, perSecond: 5)

  @Test func `gives what it holds and then what it gets`() {
    var bucket = TokenBucket(Self.rate, now: 0)
    #expect(bucket.isFull(now: 0))
    for _ in 0..<10 {
      #expect(bucket.hasTokens(now: 0))
      bucket.take(1, now: 0)
    }
    #expect(!bucket.hasTokens(now: 0))
    #expect(bucket.hasTokens(now: second / 5))
    #expect(!bucket.isFull(now: second))
    #expect(bucket.isFull(now: 2 * second))
  }

  @Test func `is in debt for what cost more than it held`() {
    var bucket = TokenBucket(Self.rate, now: 0)
    bucket.take(25, now: 0)
    #expect(!bucket.hasTokens(now: 3 * second))
    #expect(bucket.hasTokens(now: 3 * second + 1))
  }

  @Test func `reserves what comes soon enough, and takes nothing where it does not`() {
    var bucket = TokenBucket(Self.rate, now: 0)
    #expect(bucket.reserve(10, longest: 1, now: 0) == 0)
    let waits = (0..<5).map { _ in bucket.reserve(1, longest: 1, now: 0) }
    #expect(waits == [0.2, 0.4, 0.6, 0.8, 1])
    for _ in 0..<100 { #expect(bucket.reserve(1, longest: 1, now: 0) > 1) }
    #expect(bucket.reserve(1, longest: 1, now: second / 5) == 1)
  }

  @Test func `holds no more than its burst, and knows no time before the last`() {
    var bucket = TokenBucket(Self.rate, now: 5 * second)
    bucket.take(10, now: 1_000 * second)
    #expect(!bucket.hasTokens(now: 1_000 * second))
    bucket.take(0, now: 0)
    #expect(!bucket.hasTokens(now: 1_000 * second))
  }

  @Test func `is given the difference where it becomes larger`() {
    var bucket = TokenBucket(Self.rate, now: 0)
    bucket.take(12, now: 0)
    bucket.change(Self.rate * 2, now: 0)
    #expect(bucket.hasTokens(now: 0))
    bucket.take(8, now: 0)
    #expect(!bucket.hasTokens(now: 0))
    #expect(bucket.hasTokens(now: second / 10 + 1))
  }
}

@Suite struct `A client's account` {
  @Test func `has its commands go no faster than the loop can bear`() {
    var account = ClientAccount(factor: 1_000, now: 0)
    var count = 0
    while account.blockingLimit(now: 0) == nil, count < 10_000 {
      account.spend(1, now: 0)
      count += 1
    }
    #expect(count == RouterLimits.clientTurnBurst)
  }

  @Test func `spends its burst and then what comes in a second`() {
    var account = ClientAccount(factor: 1, now: 0)
    var count = 0
    // A tick of 10 ms each; of a WebSocket that always has a command.
    var turn = UInt64(account.reserve(1, now: 0))
    for tick in 0..<1_000 {
      let now = UInt64(tick) * 10_000_000
      while account.blockingLimit(now: now) == nil, turn <= now {
        account.spend(1, reserved: 1, now: now)
        count += 1
        turn = now + UInt64(account.reserve(1, now: now) * Double(second))
      }
    }
    let most = RouterLimits.clientCommandBurst + 10 * RouterLimits.clientCommandsPerSecond
    #expect((most - 10...most).contains(count))
    #expect(!account.isIdle(now: 11 * second))
    #expect(account.isIdle(now: 31 * second))
  }

  @Test func `serves in the order in which they came`() {
    var account = ClientAccount(factor: 1, now: 0)
    account.spend(RouterLimits.clientCommandBurst, now: 0)
    let waits = (0..<RouterLimits.clientCommandsPerSecond).map { _ in account.reserve(1, now: 0) }
    #expect(waits == waits.sorted() && waits.first! > 0 && waits.last! <= RouterLimits.requestWaitSeconds)
    #expect(account.reserve(1, now: 0) > RouterLimits.requestWaitSeconds)
  }

  @Test func `waits for answers, and a larger token waits for more`() {
    var account = ClientAccount(factor: 1, now: 0)
    account.countInFlight(RouterLimits.clientCommandsInFlight)
    #expect(account.blockingLimit(now: 0) == .inFlight)
    account.allow(factor: 2, now: 0)
    #expect(account.blockingLimit(now: 0) == nil)
    account.allow(factor: 1, now: 0)
    #expect(account.blockingLimit(now: 0) == nil)
    account.countInFlight(-RouterLimits.clientCommandsInFlight)
    #expect(account.holdsNothing)
  }

  @Test func `has so many listeners`() {
    var account = ClientAccount(factor: 1, now: 0)
    account.listeners = RouterLimits.clientListeners
    #expect(!account.hasRoomForListener)
    #expect(!account.isIdle(now: second))
    account.listeners -= 1
    #expect(account.hasRoomForListener)
  }

  @Test func `has so many frames decoded, over however many WebSockets`() {
    var account = ClientAccount(factor: 1_000, now: 0)
    var frames = 0
    for tick in 0..<100 {
      let now = UInt64(tick) * second / 100
      while account.mayDecode(now: now) {
        // As many empty fragments as one read has.
        account.spendRead(frames: 682, now: now)
        frames += 682
      }
    }
    let most = (RouterLimits.clientTurnsPerSecond + Double(RouterLimits.clientTurnBurst)) * 16
    #expect((Int(most) / 2...Int(most) + 682).contains(frames))
  }

  @Test func `of a thousand WebSockets that ping together is not held up for long`() {
    var account = ClientAccount(factor: 1, now: 0)
    var (now, decoded) = (UInt64(0), 0)
    while decoded < 1_000 {
      while account.mayDecode(now: now), decoded < 1_000 {
        account.spendRead(frames: 1, now: now)
        decoded += 1
      }
      now += second / 100
    }
    #expect(now < second / 3)
    #expect(account.reserve(1, now: now) == 0)
  }

  @Test func `has so much audio waiting, and a little whatever others have`() {
    var account = ClientAccount(factor: 1, now: 0)
    let all = RouterLimits.allClientsAudioByteCount
    #expect(account.hasAudioRoom(for: RouterLimits.littleAudioByteCount, total: all))
    #expect(!account.hasAudioRoom(for: RouterLimits.littleAudioByteCount + 1, total: all))
    account.audioByteCount = RouterLimits.clientAudioByteCount - 1
    #expect(!account.holdsNothing)
    #expect(account.hasAudioRoom(for: 1, total: 0) && !account.hasAudioRoom(for: 2, total: 0))
  }

  @Test func `has so many bytes waiting`() {
    var account = ClientAccount(factor: 2, now: 0)
    account.waitingByteCount = 2 * RouterLimits.clientWaitingByteCount
    #expect(!account.hasTooMuchWaiting)
    account.waitingByteCount += 1
    #expect(account.hasTooMuchWaiting)
  }
}

@Suite struct `An address's requests` {
  private let budgets = ClientBudgets(
    factor: 1, eventLoop: EmbeddedEventLoop(), logger: Logger(label: "test"), now: { 0 })

  @Test func `are so many, anyone who sends them`() throws {
    for _ in 0..<RouterLimits.addressRequestBurst {
      #expect(try budgets.reserveRequest(from: "192.0.2.1") == 0)
    }
    #expect(try budgets.reserveRequest(from: "192.0.2.1") > 0)
    #expect(try budgets.reserveRequest(from: "192.0.2.2") == 0)
    for _ in 1..<Int(RouterLimits.addressRequestsPerSecond) {
      _ = try budgets.reserveRequest(from: "192.0.2.1")
    }
    #expect(throws: RequestError.self) { try budgets.reserveRequest(from: "192.0.2.1") }
  }

  @Test func `are not used up by those of whom it is known who pays`() throws {
    for _ in 0..<10 * RouterLimits.addressRequestBurst {
      #expect(try budgets.reserveRequest(from: "192.0.2.1") == 0)
      budgets.giveBackRequest(of: "192.0.2.1")
    }
  }
}

@Suite struct `A connection's budget` {
  @Test func `names what stands in the way`() {
    var budget = ConnectionBudget(factor: 1, now: 0)
    #expect(budget.blockingLimit(unreadByteCount: RouterLimits.unreadTextByteCount, now: 0) == nil)
    #expect(
      budget.blockingLimit(unreadByteCount: RouterLimits.unreadTextByteCount + 1, now: 0) == .unreadText)
    budget.countInFlight(RouterLimits.connectionCommandsInFlight)
    #expect(budget.blockingLimit(unreadByteCount: 0, now: 0) == .inFlight)
    budget.countInFlight(-1)
    #expect(budget.blockingLimit(unreadByteCount: 0, now: 0) == nil)
    budget.spend(RouterLimits.connectionCommandBurst, now: 0)
    #expect(budget.blockingLimit(unreadByteCount: 0, now: 0) == .commands)
    #expect(budget.isInDebt(now: 0) && !budget.isInDebt(now: second))
  }
}

@Suite struct `A text message` {
  private static func payload(_ message: TextMessage) -> (header: Int, json: String) {
    var bytes = ByteBuffer()
    message.forEachPart { part in bytes.writeImmutableBuffer(part) }
    #expect(bytes.readableBytes == message.byteCount)
    let length = Int(bytes.getInteger(at: 1, as: UInt8.self) ?? 0)
    let header = length < 126 ? 2 : length == 126 ? 4 : 10
    let written =
      length < 126
      ? length
      : length == 126
        ? Int(bytes.getInteger(at: 2, as: UInt16.self) ?? 0)
        : Int(bytes.getInteger(at: 2, as: UInt64.self) ?? 0)
    #expect(bytes.readableBytes == header + written)
    return (header, String(buffer: bytes.getSlice(at: header, length: written) ?? ByteBuffer()))
  }

  @Test(arguments: [1, 100, 200, 60_000, 70_000])
  func `adds a field that others share`(_ length: Int) {
    let value = "\"" + String(repeating: "x", count: length) + "\""
    let shared = ByteBuffer(string: value)
    let message = TextMessage(Array(#"{"type":"queue"}"#.utf8), adding: "queue", shared, sharedBy: 4)
    #expect(Self.payload(message).json == #"{"type":"queue","queue":\#(value)}"#)
    #expect(message.accountedByteCount < message.byteCount / 4 + 64)
  }
}
