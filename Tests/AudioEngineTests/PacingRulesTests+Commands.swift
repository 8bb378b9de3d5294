import Testing
import WireProtocol

/// What commands do to a session that plays.
extension PacingRulesTests {
  // MARK: Pause, resume, seek

  @Test func `a pause fades out, and a resume fades in at the same place`() throws {
    play()
    try hear(5)
    _ = router.takeLog()
    send(.pause)
    try simulated.run(milliseconds: 200)
    let paused = router.takeLog()
    #expect(paused.dropLast().last?.hasPrefix("a fadeOut") == true)
    let place = try #require(paused.last?.split(separator: " ").last.flatMap { Int($0) })
    send(.resume)
    try simulated.run(milliseconds: 200)
    let resumed = router.takeLog()
    #expect(resumed[0].hasPrefix("a resumed \(place) due"))
    let kinds = resumed.dropFirst().prefix(5).map { $0.split(separator: " ")[1] }
    #expect(kinds == ["fadeIn", "fadeIn", "fadeIn", "fadeIn", "timeline"])
    #expect(simulated.director.counts.transitionsWithoutFade == 0)
  }

  @Test func `a resume at once keeps its distance from the last packet`() throws {
    play()
    try hear(5)
    let last = times(router.takeLog()).last!
    simulated.effects.waiting.withLock { $0.maximumWaitingSplices = 0 }
    send(.pause)
    send(.resume)
    try simulated.run(milliseconds: 100)
    #expect(times(router.takeLog())[0] - last >= 20)
  }

  @Test func `a command before the fade is rendered is not kept waiting`() throws {
    play()
    try hear(5)
    _ = router.takeLog()
    send(.pause)
    send(.stop)
    simulated.deliverAll()
    try simulated.step()
    #expect(events(router.takeLog()).map { $0.split(separator: " ")[1] } == ["paused", "ended"])
    #expect(simulated.director.counts.transitionsWithoutFade == 1)
  }

  @Test func `a seek fades out here and in there`() throws {
    play()
    try hear(5)
    _ = router.takeLog()
    send(.seek(positionMilliseconds: 1_000))
    try simulated.run(milliseconds: 100)
    let log = router.takeLog()
    let seeked = try #require(log.firstIndex { $0.hasPrefix("a seeked 1000 due") })
    #expect(log[seeked - 1].hasPrefix("a fadeOut"))
    #expect(log[seeked + 1].hasPrefix("a fadeIn 1000 at"))
    let times = times(log)
    #expect(zip(times, times.dropFirst()).allSatisfy { $1 - $0 == 20 })
  }

  @Test func `of two seeks the newer one is done, and both are answered`() throws {
    play(packets: 1_000, produced: 20)
    try hear(5)
    _ = router.takeLog()
    send(.seek(positionMilliseconds: 10_000))
    send(.seek(positionMilliseconds: 12_000))
    simulated.deliverAll()
    produce(30)
    try simulated.run(milliseconds: 100)
    let told = events(router.takeLog())
    #expect(told.map { $0.split(separator: " ")[1] } == ["error", "seeked"])
    #expect(told.last?.hasPrefix("a seeked 12000") == true)
    #expect(!router.hasPendingRequests)
  }

  @Test func `a seek to what is there overtakes one that waits`() throws {
    play(packets: 1_000, produced: 100)
    try hear(5)
    _ = router.takeLog()
    send(.seek(positionMilliseconds: 15_000))
    simulated.deliverAll()
    send(.seek(positionMilliseconds: 1_000))
    produce(60)
    try simulated.run(milliseconds: 200)
    let told = events(router.takeLog())
    #expect(told.count == 2 && told[0] == "a error superseded" && told[1].hasPrefix("a seeked 1000"))
  }

  @Test func `a volume that is taken back is not heard`() throws {
    play()
    try hear(5)
    _ = router.takeLog()
    send(.volume(0.5))
    simulated.deliverAll()
    send(.volume(1))
    produce(200)
    try simulated.run(milliseconds: 300)
    #expect(events(router.takeLog()) == ["a error superseded", "a status"])
    #expect(router.liveSessions[a]?.volume == 1)
  }

  @Test func `a volume is heard from one packet on, without a gap`() throws {
    play()
    try hear(5)
    _ = router.takeLog()
    send(.volume(0.5))
    simulated.deliverAll()
    produce(200)
    try simulated.run(milliseconds: 300)
    let log = router.takeLog()
    #expect(events(log) == ["a status"])
    let times = times(log)
    #expect(zip(times, times.dropFirst()).allSatisfy { $1 - $0 == 20 } && times.count >= 14)
  }
}
