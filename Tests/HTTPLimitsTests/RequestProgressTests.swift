import HTTPLimits
import Testing

@Suite struct RequestProgressTests {
  private static let second = RequestPace.nanosecondsPerSecond
  private var progress = RequestProgress(RequestPace(), now: 0)

  @Test func `the first head has 30 s, and the next 75 s from the end of the answer`() {
    var progress = progress
    #expect(progress.deadlineNanoseconds == 30 * Self.second)
    progress.head(now: 5 * Self.second)
    progress.end(now: 5 * Self.second)
    #expect(progress.deadlineNanoseconds == nil, "the server is waited for")
    progress.beginAnswer()
    progress.endAnswer(now: 9 * Self.second)
    #expect(progress.deadlineNanoseconds == 84 * Self.second)
  }

  @Test func `a body has 10 s, and a second more for every 4 KiB`() {
    var progress = progress
    progress.head(now: 0)
    #expect(progress.deadlineNanoseconds == 10 * Self.second)
    progress.body(byteCount: 4_096)
    #expect(progress.deadlineNanoseconds == 11 * Self.second)
    progress.body(byteCount: 1_024)
    #expect(progress.deadlineNanoseconds == 11 * Self.second + Self.second / 4)
    #expect(progress.expire() == .receivingBody(byteCount: 5_120))
  }

  @Test func `single bytes add next to nothing`() {
    var progress = progress
    progress.head(now: 0)
    for _ in 0..<60 { progress.body(byteCount: 1) }
    #expect(progress.deadlineNanoseconds! < 11 * Self.second)
  }

  @Test func `an answer given before the body has ended leaves the body's deadline`() {
    var progress = progress
    progress.head(now: 0)
    progress.beginAnswer()
    progress.endAnswer(now: Self.second)
    #expect(progress.hasBegunAnswer)
    #expect(progress.deadlineNanoseconds == 10 * Self.second)
    progress.end(now: 2 * Self.second)
    #expect(progress.deadlineNanoseconds == 77 * Self.second)
  }

  @Test func `nothing counts after it has expired`() {
    var progress = progress
    #expect(progress.expire() == .awaitingHead)
    progress.head(now: 0)
    progress.end(now: 0)
    #expect(progress.state == .expired)
    #expect(progress.deadlineNanoseconds == nil)
  }
}

@Suite struct ConnectionCounterTests {
  @Test func `each address has its own limit, and all together theirs`() {
    let counter = ConnectionCounter(maximumCount: 3, maximumCountPerAddress: 2)
    #expect(counter.enter("a") == nil)
    #expect(counter.enter("a") == nil)
    #expect(counter.enter("a") == .address(limit: 2))
    #expect(counter.enter("b") == nil)
    #expect(counter.enter("c") == .all(limit: 3))
    #expect(counter.refusedCount == 2)
    counter.leave("a")
    #expect(counter.count == 2)
    #expect(counter.enter("a") == nil)
  }

  @Test func `what has no address counts in all alone`() {
    let counter = ConnectionCounter(maximumCount: 4, maximumCountPerAddress: 1)
    for _ in 0..<4 { #expect(counter.enter(nil) == nil) }
    #expect(counter.enter(nil) == .all(limit: 4))
    counter.leave(nil)
    #expect(counter.enter(nil) == nil)
  }
}
