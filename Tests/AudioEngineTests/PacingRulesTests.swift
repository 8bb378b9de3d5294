import AudioEngineCore
import Testing
import WireProtocol

/// The rules by which sessions are paced, tried on the director with a clock that the test moves.
@Suite struct PacingRulesTests {
  private let simulated = SimulatedSessions()
  private let router: ModelRouter
  private let a = try! SessionID("a")
  private let b = try! SessionID("b")

  init() throws {
    router = try simulated.connect(isLogging: true)
  }

  private func send(_ action: EngineCommand.SessionAction, to id: SessionID? = nil) {
    let request = simulated.requests.make(action, from: router, now: simulated.now)
    simulated.send(action, to: id ?? a, as: request)
  }

  /// Plays a track of so many packets, of which so many are produced.
  private func play(
    _ id: SessionID? = nil, track: Int = 1, packets: Int = 100, produced: Int = .max, start: Int = 0,
    end: Int? = nil, loop: Bool = false, paused: Bool = false
  ) {
    simulated.requests.setPacketCount(packets, ofTrack: track)
    let play = simulated.requests.makePlay(
      track: track, startMilliseconds: start, endMilliseconds: end, loop: loop, paused: paused)
    send(.play(play), to: id)
    produce(min(produced, packets + 1))
    simulated.deliverAll()
  }

  private func produce(_ count: Int) {
    for producer in simulated.producers { simulated.produce(count, by: producer) }
  }

  /// Runs until so many packets of a session have come.
  private func hear(_ count: Int, of id: SessionID? = nil) throws {
    let wanted = simulated.director.counts.packets + count
    while simulated.director.counts.packets < wanted { try simulated.run(milliseconds: 1) }
  }

  /// The milliseconds at which a session's packets came, and the log's other lines.
  private func times(_ log: [String], of id: String = "a") -> [Int] {
    log.filter { $0.hasPrefix("\(id) ") }.compactMap { line in
      line.firstRange(of: " at ").flatMap { Int(line[$0.upperBound...]) }
    }
  }

  private func events(_ log: [String]) -> [String] { log.filter { !$0.contains(" at ") } }

  // MARK: Phases and rounds

  @Test func `a session's packets are 20 ms apart, and the first comes within 20 ms`() throws {
    let began = Int(simulated.now / 1_000_000)
    play()
    try simulated.run(milliseconds: 1_000)
    let times = times(router.takeLog())
    #expect(times.count == 50 && times[0] - began <= 20)
    #expect(zip(times, times.dropFirst()).allSatisfy { $1 - $0 == 20 })
  }

  /// A session waits for up to 10 ms to share others' tick; where theirs is farther away it has its own.
  @Test(arguments: [(2, false), (8, false), (12, true), (16, true)])
  func `a session shares a tick that is near`(offset: Int, isShared: Bool) throws {
    play()
    try hear(1)
    try simulated.run(milliseconds: offset)
    play(b, track: 2)
    _ = router.takeLog()
    try simulated.run(milliseconds: 100)
    let log = router.takeLog()
    let apart = times(log, of: "b")[1] - times(log)[1]
    #expect((apart % 20 == 0) == isShared)
  }

  @Test func `sixty-four sessions share a tick, and the next has its own`() throws {
    for number in 0..<65 { play(try SessionID("\(number)"), track: 1) }
    try simulated.run(milliseconds: 100)
    let log = router.takeLog()
    let firsts = (0..<65).map { times(log, of: "\($0)")[0] % 20 }
    #expect(Set(firsts[..<64]).count == 1)
    #expect(firsts[64] != firsts[0])
  }

  // MARK: Late wakes

  @Test func `a late wake is caught up with`() throws {
    play()
    try hear(1)
    _ = router.takeLog()
    simulated.wait(nanoseconds: 90_000_000)
    try simulated.step()
    let log = router.takeLog()
    #expect(times(log).count == 4 && events(log).isEmpty)
  }

  @Test func `after a stall the schedule is moved, each session is told before its next packet`() throws {
    play()
    play(b, track: 2)
    try hear(2)
    _ = router.takeLog()
    simulated.wait(nanoseconds: 500_000_000)
    try simulated.step()
    let stalled = router.takeLog()
    #expect(times(stalled).count == 1 && times(stalled, of: "b").count == 1)
    #expect(events(stalled).filter { $0.contains("rebased") }.count == 2)
    #expect(stalled[0].contains("rebased") && stalled[1].contains(" at "))
    try simulated.run(milliseconds: 100)
    #expect(times(router.takeLog()).count == 5)
    #expect(simulated.director.counts.rebases == 1)
  }

  // MARK: Ends

  @Test func `a track ends at its last packet's end`() throws {
    play(packets: 10)
    try simulated.run(milliseconds: 400)
    let log = router.takeLog()
    #expect(times(log).count == 10 && log.last == "a ended finished 200")
  }

  @Test func `a track that breaks off says so first`() throws {
    play(packets: 100, produced: 10)
    simulated.producers[0].failingIndex = 10
    produce(1)
    try simulated.run(milliseconds: 400)
    let log = router.takeLog()
    #expect(times(log).count == 10)
    #expect(log.suffix(2) == ["a error source_not_audio", "a ended finished 200"])
  }

  @Test func `a loop begins anew in the tick after its last packet`() throws {
    play(packets: 10, loop: true)
    try simulated.run(milliseconds: 500)
    let log = router.takeLog()
    let times = times(log)
    #expect(zip(times, times.dropFirst()).allSatisfy { $1 - $0 == 20 } && times.count == 25)
    #expect(events(log).filter { $0.hasPrefix("a playing 0") }.count == 3)
  }

  @Test func `a part is faded out at its end`() throws {
    play(end: 400)
    try simulated.run(milliseconds: 600)
    let log = router.takeLog()
    #expect(times(log).count == 20)
    #expect(log.last == "a ended finished 400")
    #expect(log.dropLast().last?.hasPrefix("a fadeOut 380") == true)
  }

  @Test func `what is prepared begins 20 ms after the last packet`() throws {
    play(packets: 20)
    try hear(5)
    simulated.requests.setPacketCount(20, ofTrack: 2)
    send(.prepare(simulated.requests.makePlay(track: 2)))
    produce(21)
    try simulated.run(milliseconds: 1_000)
    let log = router.takeLog()
    let times = times(log)
    #expect(times.count == 40 && zip(times, times.dropFirst()).allSatisfy { $1 - $0 == 20 })
    let join = ["a ended finished 400", "a extracting", "a ready"]
    #expect(events(log).contains("a prepared"))
    let ended = try #require(log.firstIndex(of: join[0]))
    #expect(Array(log[ended..<ended + 3]) == join && log[ended + 3].hasPrefix("a playing 0"))
  }

  @Test func `what is not ready in time follows as soon as it is`() throws {
    play(packets: 20)
    try hear(5)
    send(.prepare(simulated.requests.makePlay(track: 2)))
    try simulated.run(milliseconds: 500)
    let log = router.takeLog()
    #expect(Array(log.suffix(3)) == ["a ended finished 400", "a extracting", "a error superseded"])
    produce(50)
    try simulated.run(milliseconds: 100)
    #expect(!times(router.takeLog()).isEmpty)
  }

  // MARK: Starvation

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

  @Test func `a session that nobody hears is ended`() throws {
    play(paused: true)
    try simulated.run(milliseconds: 29_000)
    #expect(router.takeLog().last == "a paused 0")
    try simulated.run(milliseconds: 3_000)
    #expect(router.takeLog() == ["a ended cleanup 0"])
  }

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
    simulated.effects.waiting.withLock { $0.hasRoomForSplices = false }
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
