import RouterCore
import Testing

@Suite struct `Counting packets` {
  @Test func `puts every packet 20 ms after the one before it`() {
    var counter = PacketCounter()
    counter.anchor(positionMilliseconds: 1_000, dueNanoseconds: 5_000_000_000)
    #expect(
      counter.take()
        == PacketCounter.Place(sequence: 0, dueNanoseconds: 5_000_000_000, positionMilliseconds: 1_000))
    #expect(
      counter.take()
        == PacketCounter.Place(sequence: 1, dueNanoseconds: 5_020_000_000, positionMilliseconds: 1_020))
  }

  @Test func `goes on with the sequence after an anchor`() {
    var counter = PacketCounter()
    counter.anchor(positionMilliseconds: 0, dueNanoseconds: 0)
    for _ in 0..<10 { _ = counter.take() }
    counter.anchor(positionMilliseconds: 60_000, dueNanoseconds: 900_000_000)
    #expect(
      counter.next
        == PacketCounter.Place(sequence: 10, dueNanoseconds: 900_000_000, positionMilliseconds: 60_000))
  }

  @Test func `keeps the due time where a seek while paused gives none`() {
    var counter = PacketCounter()
    counter.anchor(positionMilliseconds: 0, dueNanoseconds: 77)
    counter.anchor(positionMilliseconds: 500, dueNanoseconds: nil)
    #expect(counter.next.dueNanoseconds == 77)
    #expect(counter.next.positionMilliseconds == 500)
  }

  @Test func `adds lost packets to sequence, position and due time`() {
    var counter = PacketCounter()
    counter.anchor(positionMilliseconds: 100, dueNanoseconds: 1_000_000_000)
    _ = counter.take()
    counter.skip(3)
    #expect(
      counter.take()
        == PacketCounter.Place(sequence: 4, dueNanoseconds: 1_080_000_000, positionMilliseconds: 180))
  }

  @Test func `wraps the sequence`() {
    var counter = PacketCounter()
    counter.skip(Int(UInt32.max))
    #expect(counter.take().sequence == UInt32.max)
    #expect(counter.take().sequence == 0)
  }
}
