import Testing
import WireProtocol

/// What becomes of a session that has nothing to send, or that nobody hears.
extension PacingRulesTests {
  @Test func `a session without packets says so once, and where it continues`() throws {
    play(produced: 10)
    try simulated.run(milliseconds: 400)
    #expect(router.takeLog().last == "a buffering 200")
    try simulated.run(milliseconds: 11_000)
    #expect(router.takeLog() == ["a stuck 200 for 10000"])
    produce(20)
    try simulated.run(milliseconds: 100)
    let log = router.takeLog()
    #expect(log[0].hasPrefix("a playing 200 due") && log[1].hasPrefix("a timeline 200 at"))
    #expect(simulated.director.counts.underruns == 1)
  }

  @Test func `each wait for packets is told anew`() throws {
    play(produced: 10)
    for place in [200, 600] {
      try simulated.run(milliseconds: 12_000)
      #expect(router.takeLog().suffix(2) == ["a buffering \(place)", "a stuck \(place) for 10000"])
      produce(20)
    }
  }

  @Test func `a session that is paused waits for no packets`() throws {
    play(produced: 10)
    try simulated.run(milliseconds: 400)
    send(.pause)
    // The router's model would throw at a wait.
    send(.status)
    try simulated.run(milliseconds: 20)
    #expect(events(router.takeLog()).suffix(2) == ["a paused 200", "a status"])
  }

  @Test func `a session that starves is ended`() throws {
    play(produced: 10)
    try simulated.run(milliseconds: 32_000)
    #expect(router.takeLog().last == "a ended cleanup 200")
  }

  @Test func `a session of a live source that is silent stays until it sounds again`() throws {
    play(packets: 5_000, produced: 10)
    simulated.producers[0].timeline.becomeLive()
    try simulated.run(milliseconds: 120_000)
    #expect(router.takeLog().suffix(2) == ["a buffering 200", "a stuck 200 for 10000"])
    produce(20)
    try simulated.run(milliseconds: 100)
    #expect(router.takeLog().first?.hasPrefix("a playing 200") == true)
  }

  @Test func `a session that was paused and plays again is not ended`() throws {
    play(packets: 3_000)
    try hear(1)
    send(.pause)
    try simulated.run(milliseconds: 100)
    send(.resume)
    try simulated.run(milliseconds: 40_000)
    #expect(!events(router.takeLog()).contains { $0.hasPrefix("a ended") })
  }

  @Test func `a session that nobody hears is ended`() throws {
    play(paused: true)
    try simulated.run(milliseconds: 29_000)
    #expect(router.takeLog().last == "a paused 0")
    try simulated.run(milliseconds: 3_000)
    #expect(router.takeLog() == ["a ended cleanup 0"])
  }
}
