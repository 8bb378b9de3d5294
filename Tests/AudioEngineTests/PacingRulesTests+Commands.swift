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
    simulated.effects.waiting.withLock { $0.splicesAtOnce = 0 }
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

  /// Gives splices as two cores would that begin and finish one in 1.2 ms.
  private func renderSplices(until end: UInt64) throws {
    while simulated.now < end {
      simulated.wait(nanoseconds: 600_000)
      if simulated.spliceCount > 0 { simulated.deliverSplice(beginsFirst: true) }
      try simulated.step()
    }
  }

  @Test func `sixty seeks in one moment all fade, and nine in ten are answered within 40 ms`() throws {
    let ids = try (0..<60).map { try SessionID("s\($0)") }
    for (number, id) in ids.enumerated() {
      play(id, track: number % 6 + 1, packets: 500)
      if number % 8 == 0 { try simulated.run(milliseconds: 7) }
    }
    try hear(200)
    _ = router.takeLog()
    let asked = simulated.now
    for id in ids { send(.seek(positionMilliseconds: 5_000), to: id) }
    try renderSplices(until: asked + 150_000_000)
    let log = router.takeLog()
    #expect(simulated.director.counts.transitionsWithoutFade == 0)
    #expect(log.count { $0.contains(" seeked 5000 ") } == ids.count)
    for id in ids {
      let kinds = log.filter { $0.hasPrefix("\(id) fade") }.map { $0.split(separator: " ")[1] }
      #expect(kinds == ["fadeOut", "fadeIn", "fadeIn", "fadeIn", "fadeIn"], "\(id)")
    }
    let answered = log.filter { $0.contains(" fadeOut ") }.compactMap { line in
      line.firstRange(of: " at ").flatMap { Int(line[$0.upperBound...]) }
    }
    #expect(answered.sorted()[53] - Int(asked / 1_000_000) <= 40)
  }

  @Test func `a cut whose fade is late is put off, and its fade in is kept`() throws {
    play()
    try hear(5)
    _ = router.takeLog()
    send(.seek(positionMilliseconds: 1_000))
    for _ in 0..<40 {
      simulated.wait(nanoseconds: 1_000_000)
      try simulated.step()
    }
    let before = router.takeLog()
    #expect(before.count == 2 && before.allSatisfy { $0.hasPrefix("a timeline") })
    try simulated.run(milliseconds: 150)
    let kinds = router.takeLog().prefix(7).map { $0.split(separator: " ")[1] }
    #expect(kinds == ["fadeOut", "seeked", "fadeIn", "fadeIn", "fadeIn", "fadeIn", "timeline"])
    #expect(simulated.director.counts.transitionsWithoutFade == 0)
  }

  @Test func `a cut is not put off past the last packet of a part`() throws {
    play(end: 200)
    try hear(5)
    _ = router.takeLog()
    send(.seek(positionMilliseconds: 20))
    for _ in 0..<200 {
      simulated.wait(nanoseconds: 1_000_000)
      try simulated.step()
    }
    let log = router.takeLog()
    let seeked = try #require(log.firstIndex { $0.hasPrefix("a seeked 20 ") })
    #expect(log[seeked - 1].hasPrefix("a timeline 160"))
    #expect(simulated.director.counts.transitionsWithoutFade >= 1)
  }

  @Test func `a cut at the end of a loop's round happens in the next one, with its fade`() throws {
    play(packets: 20, loop: true)
    try hear(19)
    _ = router.takeLog()
    // The last packet is due in less time than a splice needs.
    simulated.effects.waiting.withLock { $0.leadNanoseconds = 30_000_000 }
    send(.pause)
    try simulated.run(milliseconds: 200)
    let log = router.takeLog()
    #expect(log.contains { $0.hasPrefix("a playing 0") })
    #expect(log.last?.hasPrefix("a paused") == true && log.dropLast().last?.hasPrefix("a fadeOut") == true)
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
