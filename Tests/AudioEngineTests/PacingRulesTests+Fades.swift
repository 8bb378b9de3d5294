import Testing
import WireProtocol

/// When fades are there, and what becomes of a cut whose fade is late.
extension PacingRulesTests {
  /// Gives splices as two cores would that have one begun or finished in 0.7 ms each: what libopus takes to decode seven
  /// packets and to encode four.
  private func renderSplices(milliseconds: Int) throws {
    let end = simulated.now + UInt64(milliseconds) * 1_000_000
    while simulated.now < end {
      simulated.wait(nanoseconds: 350_000)
      if simulated.spliceCount > 0 { simulated.deliverSplice(beginsFirst: true) }
      try simulated.step()
    }
  }

  /// Lets time pass without a splice.
  private func wait(milliseconds: Int) throws {
    for _ in 0..<milliseconds {
      simulated.wait(nanoseconds: 1_000_000)
      try simulated.step()
    }
  }

  /// What was heard of a session: the kinds of packets, and events by their names.
  private func course(_ log: [String], of id: SessionID) -> [Substring] {
    log.filter { $0.hasPrefix("\(id) ") }.map { $0.split(separator: " ")[1] }
  }

  @Test func `sixty seeks in one moment all fade, and nine in ten are answered within 40 ms`() throws {
    let ids = try (0..<60).map { try SessionID("s\($0)") }
    for (number, id) in ids.enumerated() {
      play(id, track: number % 6 + 1, packets: 500)
      if number % 8 == 0 { try simulated.run(milliseconds: 7) }
    }
    try simulated.run(milliseconds: 200)
    _ = router.takeLog()
    let asked = simulated.now
    for id in ids { send(.seek(positionMilliseconds: 5_000), to: id) }
    try renderSplices(milliseconds: 200)
    let log = router.takeLog()
    #expect(simulated.director.counts.transitionsWithoutFade == 0)
    #expect(simulated.director.counts.underruns == 0)
    for id in ids {
      let course = course(log, of: id).drop { $0 == "timeline" }.prefix(7)
      #expect(course == ["fadeOut", "seeked", "fadeIn", "fadeIn", "fadeIn", "fadeIn", "timeline"], "\(id)")
    }
    let answered = log.filter { $0.contains(" fadeOut ") }.compactMap { line in
      line.firstRange(of: " at ").flatMap { Int(line[$0.upperBound...]) }
    }
    #expect(answered.count == 60 && answered.sorted()[53] - Int(asked / 1_000_000) <= 40)
  }

  @Test func `a cut whose fade is late is put off`() throws {
    play()
    try hear(5)
    _ = router.takeLog()
    send(.seek(positionMilliseconds: 1_000))
    try wait(milliseconds: 40)
    #expect(course(router.takeLog(), of: a) == ["timeline", "timeline"])
    try simulated.run(milliseconds: 150)
    let course = course(router.takeLog(), of: a).drop { $0 == "timeline" }.prefix(7)
    #expect(course == ["fadeOut", "seeked", "fadeIn", "fadeIn", "fadeIn", "fadeIn", "timeline"])
    #expect(simulated.director.counts.transitionsWithoutFade == 0)
  }

  @Test func `a cut is not put off forever`() throws {
    play(packets: 1_000)
    try hear(5)
    send(.seek(positionMilliseconds: 10_000))
    try wait(milliseconds: 1_000)
    #expect(router.takeLog().contains { $0.hasPrefix("a seeked 10000 ") })
    #expect(simulated.director.counts.transitionsWithoutFade == 1)
  }

  @Test(arguments: [1, 2], [EngineCommand.SessionAction.volume(0.5), .pause])
  func `a loop that is shorter than a fade takes puts no cut off forever`(
    packets: Int, action: EngineCommand.SessionAction
  ) throws {
    simulated.effects.waiting.withLock { $0.leadNanoseconds = 60_000_000 }
    play(packets: packets, loop: true)
    try hear(5)
    _ = router.takeLog()
    send(action)
    for _ in 0..<60 {
      produce(10)
      try simulated.run(milliseconds: 10)
    }
    #expect(router.takeLog().contains { $0.hasPrefix("a status") || $0.hasPrefix("a paused") })
  }

  @Test func `a fade in that is late makes the silence longer`() throws {
    play()
    try hear(5)
    _ = router.takeLog()
    send(.seek(positionMilliseconds: 1_000))
    // The end of the old sound.
    simulated.deliverSplice()
    try wait(milliseconds: 60)
    let before = course(router.takeLog(), of: a).drop { $0 == "timeline" }
    #expect(before == ["fadeOut", "seeked", "buffering"])
    try simulated.run(milliseconds: 100)
    let after = course(router.takeLog(), of: a).prefix(6)
    #expect(after == ["playing", "fadeIn", "fadeIn", "fadeIn", "fadeIn", "timeline"])
    #expect(simulated.director.counts.transitionsWithoutFade == 0)
  }

  @Test func `a pause before a fade in is heard needs no fade`() throws {
    play()
    try hear(5)
    _ = router.takeLog()
    send(.seek(positionMilliseconds: 1_000))
    simulated.deliverSplice()
    try wait(milliseconds: 40)
    send(.pause)
    try simulated.run(milliseconds: 40)
    let course = course(router.takeLog(), of: a).drop { $0 == "timeline" }
    #expect(course.first == "fadeOut" && course.last == "paused" && !course.contains("fadeIn"))
    #expect(simulated.director.counts.transitionsWithoutFade == 0)
  }

  @Test func `a cut is not put off past the last packet of a part`() throws {
    play(end: 200)
    try hear(5)
    _ = router.takeLog()
    send(.seek(positionMilliseconds: 20))
    try wait(milliseconds: 200)
    let log = router.takeLog()
    let seeked = try #require(log.firstIndex { $0.hasPrefix("a seeked 20 ") })
    #expect(log[seeked - 1].hasPrefix("a timeline 160"))
    #expect(!log.contains { $0.hasPrefix("a ended") })
    #expect(simulated.director.counts.transitionsWithoutFade >= 1)
  }

  @Test(arguments: [false, true])
  func `a cut at the end of a loop's round happens in the next one, with its fade`(isPart: Bool) throws {
    play(packets: isPart ? 40 : 20, end: isPart ? 400 : nil, loop: true)
    // The last packet is due in less time than a splice needs.
    simulated.effects.waiting.withLock { $0.leadNanoseconds = 30_000_000 }
    try hear(19)
    _ = router.takeLog()
    send(.pause)
    try simulated.run(milliseconds: 200)
    let course = course(router.takeLog(), of: a)
    #expect(course.contains("playing") && course.suffix(2) == ["fadeOut", "paused"], "\(course)")
    #expect(simulated.director.counts.transitionsWithoutFade == 0)
  }
}
