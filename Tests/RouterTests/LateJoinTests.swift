import NIOCore
import RouterCore
import Testing

@Suite struct `The late-join ring` {
  private func ring(packets: Int, audioByteCount: Int = 3) -> LateJoinRing {
    var ring = LateJoinRing()
    var counter = PacketCounter()
    counter.anchor(positionMilliseconds: 0, dueNanoseconds: 0)
    for number in 0..<packets {
      let audio = [UInt8](repeating: UInt8(truncatingIfNeeded: number), count: audioByteCount)
      ring.append(counter.take(), audio[...])
    }
    return ring
  }

  private func sequences(_ ring: LateJoinRing, last count: Int) -> [UInt32] {
    var sequences: [UInt32] = []
    ring.forEach(last: count) { record, _ in
      sequences.append(record.getInteger(at: record.readerIndex) ?? .max)
    }
    return sequences
  }

  @Test func `gives the newest packets, oldest first`() {
    #expect(sequences(ring(packets: 10), last: 3) == [7, 8, 9])
  }

  @Test func `gives what it has when asked for more`() {
    #expect(sequences(ring(packets: 2), last: 250) == [0, 1])
    #expect(sequences(ring(packets: 0), last: 250) == [])
  }

  @Test(arguments: [250, 251, 1_000, 5_003])
  func `keeps the last 5 s, however long it has run`(_ packets: Int) {
    let ring = ring(packets: packets, audioByteCount: 320)
    #expect(ring.count == 250)
    #expect(sequences(ring, last: 250) == Array(UInt32(packets - 250)..<UInt32(packets)))
  }

  @Test func `keeps fewer of packets that are too large`() {
    let ring = ring(packets: 100, audioByteCount: 60_000)
    #expect(ring.count == 8)
    #expect(sequences(ring, last: 250).last == 99)
  }

  @Test func `takes little more than its bytes`() {
    let ring = ring(packets: 1_000, audioByteCount: 320)
    #expect(ring.byteCount < 250 * 338 * 5 / 4)
    #expect((ring.byteCount..<ring.byteCount * 3 / 2).contains(ring.wishedByteCount))
    #expect(self.ring(packets: 0).byteCount == 0 && self.ring(packets: 0).wishedByteCount == 0)
  }

  @Test func `keeps the newest of what it may`() {
    var ring = ring(packets: 250, audioByteCount: 320)
    ring.limit = 20_000
    #expect(ring.byteCount <= 20_000 && (40...60).contains(ring.count))
    #expect(sequences(ring, last: 250).last == 249)
    ring.limit = 0
    #expect(ring.byteCount == 0 && ring.count == 0)
    ring.append(PacketCounter().next, [1, 2, 3][...])
    #expect(ring.byteCount == 0 && ring.wishedByteCount > 0)
  }

  @Test func `makes room of its own where there is no more`() {
    var ring = LateJoinRing()
    var counter = PacketCounter()
    for _ in 0..<250 {
      let taken = ring.byteCount
      ring.append(counter.take(), [UInt8](repeating: 7, count: 1_000)[...]) { taken + $0 <= 40_960 }
    }
    #expect((36_864...40_960).contains(ring.byteCount))
    #expect(sequences(ring, last: 250).last == 249)
    for _ in 0..<10 { ring.append(counter.take(), [UInt8](repeating: 7, count: 1_000)[...]) { $0 <= 0 } }
    #expect(ring.byteCount == 40_960 && sequences(ring, last: 250).last == 259)
  }

  @Test func `forgets`() {
    var ring = ring(packets: 100)
    ring.removeAll()
    #expect(sequences(ring, last: 250) == [])
  }

  @Test func `gives the audio as it came`() {
    var audio: [[UInt8]] = []
    ring(packets: 3, audioByteCount: 2).forEach(last: 2) { audio.append(Array($1.readableBytesView)) }
    #expect(audio == [[1, 1], [2, 2]])
  }
}

@Suite struct `Late joiners' shares` {
  private static let ann = ClientID(subject: "Ann", address: nil)
  private static let ben = ClientID(subject: "Ben", address: nil)

  private func wishes(
    _ count: Int, of client: ClientID = ann, byteCount: Int = 100_000, isHeard: Bool = false
  ) -> [LateJoinShares.Wish] {
    Array(repeating: .init(client: client, byteCount: byteCount, isHeard: isHeard), count: count)
  }

  @Test func `are all there is to keep where there is room`() {
    let shares = LateJoinShares(wishes(100) + wishes(20, of: Self.ben))
    #expect(!shares.isScarce)
    #expect(shares.byteCount(for: wishes(1)[0]) == RouterLimits.lateJoinByteCount)
  }

  @Test func `are equal parts of what one client may have, and another's are whole`() {
    let shares = LateJoinShares(wishes(1_000) + wishes(20, of: Self.ben))
    #expect(shares.isScarce)
    let each = shares.byteCount(for: wishes(1)[0])
    #expect((RouterLimits.clientLateJoinByteCount / 1_000 - 1...16_800).contains(each))
    #expect(shares.byteCount(for: wishes(1, of: Self.ben)[0]) == RouterLimits.lateJoinByteCount)
  }

  @Test func `are first of those that somebody hears`() {
    let heard = wishes(100, isHeard: true)
    let shares = LateJoinShares(heard + wishes(1_000))
    #expect(shares.byteCount(for: heard[0]) == RouterLimits.lateJoinByteCount)
    let left = RouterLimits.clientLateJoinByteCount - 100 * 100_000
    #expect((left / 1_000 - 1...left / 1_000).contains(shares.byteCount(for: wishes(1)[0])))
    let full = LateJoinShares(wishes(500, isHeard: true) + wishes(1))
    #expect(full.byteCount(for: wishes(1)[0]) == 0)
    #expect(full.byteCount(for: heard[0]) < 100_000)
  }

  @Test func `of many greedy clients leave a modest one what it wants`() {
    let greedy = (0..<10).flatMap { wishes(1_000, of: ClientID(subject: "\($0)", address: nil)) }
    let shares = LateJoinShares(greedy + wishes(1))
    #expect(shares.byteCount(for: wishes(1)[0]) == RouterLimits.lateJoinByteCount)
    let all = greedy.reduce(0) { $0 + shares.byteCount(for: $1) }
    #expect((RouterLimits.allLateJoinByteCount * 9 / 10...RouterLimits.allLateJoinByteCount).contains(all))
  }
}

@Suite struct `A burst` {
  private var ring: LateJoinRing {
    var ring = LateJoinRing()
    var counter = PacketCounter()
    counter.anchor(positionMilliseconds: 40, dueNanoseconds: 0x0102_0304_0506_0708)
    ring.append(counter.take(), [0xAA, 0xBB][...])
    ring.append(counter.take(), [0xCC][...])
    return ring
  }

  @Test func `is a message a packet for opus.v1`() throws {
    let burst = try #require(WebSocketFrames.burst(ring, packetCount: 5, subprotocol: .opus))
    #expect(Array(burst.frames.readableBytesView) == [0x82, 2, 0xAA, 0xBB, 0x82, 1, 0xCC])
    #expect(burst.messageCount == 2)
  }

  @Test func `is one message with all records for timed.v1`() throws {
    let burst = try #require(WebSocketFrames.burst(ring, packetCount: 5, subprotocol: .timed))
    let first: [UInt8] =
      [0, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8, 0, 0, 0, 40, 0, 2, 0xAA, 0xBB]
    // 20 ms are 0x1312D00 ns.
    let second: [UInt8] =
      [0, 0, 0, 1, 1, 2, 3, 4, 6, 0x37, 0x34, 0x08, 0, 0, 0, 60, 0, 1, 0xCC]
    #expect(
      Array(burst.frames.readableBytesView) == [0x82, UInt8(first.count + second.count)] + first + second)
    #expect(burst.messageCount == 1)
  }

  @Test func `is nothing where nothing was played`() {
    #expect(WebSocketFrames.burst(LateJoinRing(), packetCount: 5, subprotocol: .opus) == nil)
    #expect(WebSocketFrames.burst(LateJoinRing(), packetCount: 5, subprotocol: .timed) == nil)
  }

  @Test(arguments: [
    (125, [0x82, 125] as [UInt8]), (126, [0x82, 126, 0, 126]), (1_275, [0x82, 126, 0x04, 0xFB]),
  ])
  func `has the shortest header that fits`(_ byteCount: Int, _ header: [UInt8]) throws {
    var ring = LateJoinRing()
    var counter = PacketCounter()
    ring.append(counter.take(), [UInt8](repeating: 9, count: byteCount)[...])
    let burst = try #require(WebSocketFrames.burst(ring, packetCount: 1, subprotocol: .opus))
    #expect(Array(burst.frames.readableBytesView.prefix(header.count)) == header)
    #expect(burst.frames.readableBytes == header.count + byteCount)
  }
}
