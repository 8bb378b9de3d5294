import ServiceSupport
import Testing

@Suite struct `Counts by key` {
  @Test func `a count that comes to nothing is not kept`() {
    var counts = ["a": 2, "b": 5]
    counts.countDown("a")
    #expect(counts == ["a": 1, "b": 5])
    counts.countDown("a")
    counts.countDown("a")
    counts.countDown("c")
    #expect(counts == ["b": 5])
    counts.countDown("b", by: 4)
    #expect(counts == ["b": 1])
    counts.countDown("b", by: 4)
    #expect(counts.isEmpty)
  }
}
