import AudioEngineCore
import Testing
import WireProtocol

/// The rules by which sessions are paced, tried on the director with a clock that the test moves.
@Suite struct PacingRulesTests {
  let simulated = SimulatedSessions()
  let router: ModelRouter
  // Valid names.
  let a = try! SessionID("a")
  let b = try! SessionID("b")

  init() throws {
    router = try simulated.connect(isLogging: true)
  }

  func send(_ action: EngineCommand.SessionAction, to id: SessionID? = nil) {
    let request = simulated.requests.make(action, from: router, now: simulated.now)
    simulated.send(action, to: id ?? a, as: request)
  }

  /// Plays a track of so many packets, of which so many are produced.
  func play(
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

  func produce(_ count: Int) {
    for producer in simulated.producers { simulated.produce(count, by: producer) }
  }

  /// Runs until so many packets of a session have come.
  func hear(_ count: Int, of id: SessionID? = nil) throws {
    let wanted = simulated.director.counts.packets + count
    while simulated.director.counts.packets < wanted { try simulated.run(milliseconds: 1) }
  }

  /// The milliseconds at which a session's packets came, and the log's other lines.
  func times(_ log: [String], of id: String = "a") -> [Int] {
    log.filter { $0.hasPrefix("\(id) ") }.compactMap { line in
      line.firstRange(of: " at ").flatMap { Int(line[$0.upperBound...]) }
    }
  }

  func events(_ log: [String]) -> [String] { log.filter { !$0.contains(" at ") } }

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

  @Test func `a session that begins after a stall is told nothing of it`() throws {
    play()
    try hear(2)
    simulated.wait(nanoseconds: 500_000_000)
    try simulated.step()
    _ = router.takeLog()
    play(b, track: 2)
    try simulated.run(milliseconds: 100)
    let log = router.takeLog()
    #expect(!times(log, of: "b").isEmpty && !log.contains { $0.hasPrefix("b rebased") })
  }

  // MARK: Routers

  @Test func `one session more than there may be is refused`() throws {
    let count = SimulatedSessions.maximumSessions
    for number in 0...count { play(try SessionID("\(number)")) }
    try simulated.step()
    #expect(events(router.takeLog()).last == "\(count) error too_many_sessions")
    #expect(router.liveSessions.count == count)
  }

  @Test func `a new router is told of every session`() throws {
    let count = WireLimits.maximumHelloSessions + 40
    for number in 0..<count { play(try SessionID("\(number)"), paused: true) }
    let other = try simulated.connect()
    try simulated.run(milliseconds: 10)
    #expect(other.liveSessions.count == count)
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

  @Test func `a part is played to its end where the source breaks off behind it`() throws {
    play(produced: 15, end: 200)
    simulated.producers[0].failingIndex = 15
    produce(1)
    try simulated.run(milliseconds: 400)
    let log = router.takeLog()
    #expect(times(log).count == 10 && log.last == "a ended finished 200")
    #expect(!log.contains { $0.hasPrefix("a error") })
  }

  @Test func `a loop begins anew in the tick after its last packet`() throws {
    play(packets: 10, loop: true)
    try simulated.run(milliseconds: 500)
    let log = router.takeLog()
    let times = times(log)
    #expect(zip(times, times.dropFirst()).allSatisfy { $1 - $0 == 20 } && times.count == 25)
    #expect(events(log).filter { $0.hasPrefix("a playing 0") }.count == 3)
  }

  /// Plays in a loop, of whose 6 s the last 200 ms are on a timeline of their own.
  private func playLastOfLoop() throws {
    play(packets: 300, produced: 20, loop: true)
    try hear(5)
    send(.seek(positionMilliseconds: 5_800))
    simulated.deliverAll()
    produce(20)
    try simulated.run(milliseconds: 100)
    _ = router.takeLog()
  }

  @Test func `a loop that cannot begin anew says why`() throws {
    try playLastOfLoop()
    simulated.setFull(true)
    try simulated.run(milliseconds: 300)
    let told = events(router.takeLog())
    #expect(told.suffix(2) == ["a error workers_exhausted", "a ended finished 6000"])
  }

  @Test func `a volume that is on its way comes with the next round of a loop`() throws {
    try playLastOfLoop()
    send(.volume(0.5))
    try simulated.run(milliseconds: 300)
    produce(50)
    try simulated.run(milliseconds: 300)
    let told = events(router.takeLog())
    #expect(told.contains { $0.hasPrefix("a playing 0") } && !told.contains { $0.hasPrefix("a error") })
    #expect(router.liveSessions[a]?.volume == 0.5 && !router.hasPendingRequests)
  }

  @Test func `a fade in does not go on behind the end of a round`() throws {
    play(packets: 20, loop: true)
    try hear(5)
    send(.seek(positionMilliseconds: 360))
    try simulated.run(milliseconds: 200)
    let log = router.takeLog()
    let again = try #require(log.lastIndex { $0.hasPrefix("a playing 0") })
    #expect(log[again + 1].hasPrefix("a timeline 0 at"))
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

  @Test func `what is prepared behind a play follows that one`() throws {
    simulated.requests.setPacketCount(10, ofTrack: 2)
    play()
    try hear(5)
    send(.play(simulated.requests.makePlay(track: 2)))
    send(.prepare(simulated.requests.makePlay(track: 3)))
    produce(200)
    try simulated.run(milliseconds: 400)
    let log = router.takeLog()
    let ended = try #require(log.lastIndex(of: "a ended finished 200"))
    #expect(log[ended...].contains { $0.hasPrefix("a playing 0") })
  }

  @Test func `what is prepared has the volume that was set since`() throws {
    play(packets: 20)
    try hear(2)
    send(.prepare(simulated.requests.makePlay(track: 2)))
    produce(200)
    simulated.deliverAll()
    send(.volume(0.5))
    simulated.deliverAll()
    produce(200)
    try simulated.run(milliseconds: 100)
    produce(200)
    try simulated.run(milliseconds: 900)
    #expect(events(router.takeLog()).contains("a ended finished 400"))
    #expect(router.liveSessions[a]?.volume == 0.5)
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
}
