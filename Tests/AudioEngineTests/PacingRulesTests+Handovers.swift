import Testing
import WireProtocol

/// How a session comes from one engine to another.
extension PacingRulesTests {
  private func standBy(
    _ engine: SimulatedSessions, _ router: ModelRouter, at position: Int, loop: Bool = false
  ) throws {
    // What it says at first is not of this.
    try engine.step()
    for router in engine.routers { _ = router.takeLog() }
    engine.requests.setPacketCount(1_000, ofTrack: 1)
    let action = EngineCommand.SessionAction.standBy(
      engine.requests.makePlay(track: 1, loop: loop), positionMilliseconds: position)
    engine.send(action, to: a, as: engine.requests.make(action, from: router, now: engine.now))
    for producer in engine.producers { engine.produce(200, by: producer) }
    engine.deliverAll()
  }

  private func takeOver(at position: Int, inMilliseconds wait: Int?) {
    let due = wait.map { simulated.now + UInt64($0) * 1_000_000 }
    send(.takeOver(positionMilliseconds: position, dueNanoseconds: due))
  }

  private func places(_ log: [String]) -> [Int] {
    log.filter { $0.contains(" at ") }.compactMap { Int($0.split(separator: " ")[2]) }
  }

  // MARK: Standing by

  @Test func `what stands by is heard and seen by nobody`() throws {
    let other = try simulated.connect(isLogging: true)
    try standBy(simulated, router, at: 400)
    try simulated.run(milliseconds: 1_000)
    #expect(router.takeLog() == ["a ready"] && other.takeLog().isEmpty)
    #expect(try simulated.connect().liveSessions.isEmpty)
  }

  @Test func `it begins with the packet of the position, when that is due, and without a fade`() throws {
    try standBy(simulated, router, at: 400)
    let began = Int(simulated.now / 1_000_000)
    takeOver(at: 600, inMilliseconds: 111)
    try simulated.run(milliseconds: 300)
    let log = router.takeLog().dropFirst()
    #expect(
      log.first == "a status" && log.dropFirst().first?.hasPrefix("a rebased 600 due ") == true, "\(log)")
    #expect(places(Array(log)).prefix(3) == [600, 620, 640])
    #expect(abs(times(Array(log))[0] - began - 111) <= 1)
    #expect(log.filter { $0.contains(" at ") }.allSatisfy { $0.contains("timeline") })
  }

  @Test func `paused, it stays where it is`() throws {
    try standBy(simulated, router, at: 400)
    takeOver(at: 600, inMilliseconds: nil)
    try simulated.run(milliseconds: 100)
    #expect(router.takeLog() == ["a ready", "a status"])
    #expect(router.statuses[a]?.state == .paused && router.statuses[a]?.positionMilliseconds == 600)
    send(.resume)
    try simulated.run(milliseconds: 100)
    #expect(places(router.takeLog()).first == 600)
  }

  @Test func `a loop begins anew where it did before`() throws {
    try standBy(simulated, router, at: 19_800, loop: true)
    takeOver(at: 19_900, inMilliseconds: 50)
    try simulated.run(milliseconds: 200)
    simulated.deliverAll()
    produce(200)
    simulated.deliverAll()
    try simulated.run(milliseconds: 300)
    let places = places(router.takeLog())
    #expect(places.first == 19_900 && places.contains(0) && !places.contains(19_800), "\(places)")
  }

  @Test func `what is not there yet, or due already, is refused, and can be asked for again`() throws {
    try standBy(simulated, router, at: 400)
    takeOver(at: 90_000, inMilliseconds: 100)
    takeOver(at: 600, inMilliseconds: 0)
    takeOver(at: 380, inMilliseconds: 100)
    try simulated.run(milliseconds: 200)
    #expect(router.takeLog() == ["a ready"] + Array(repeating: "a error invalid_state", count: 3))
    takeOver(at: 420, inMilliseconds: 100)
    try simulated.run(milliseconds: 200)
    #expect(places(router.takeLog()).first == 420)
    takeOver(at: 9_000, inMilliseconds: 100)
    try simulated.run(milliseconds: 20)
    #expect(events(router.takeLog()) == ["a error invalid_state"])
  }

  @Test func `any other command finds nothing, and ends what stands by`() throws {
    for action in [
      EngineCommand.SessionAction.pause, .seek(positionMilliseconds: 0), .handOver(positionMilliseconds: 0),
    ] {
      try standBy(simulated, router, at: 400)
      send(action)
      takeOver(at: 420, inMilliseconds: 100)
      try simulated.run(milliseconds: 200)
      #expect(router.takeLog() == ["a ready", "a error no_such_session", "a error no_such_session"])
    }
    try standBy(simulated, router, at: 400)
    send(.status)
    try simulated.run(milliseconds: 20)
    #expect(router.takeLog() == ["a ready", "a status"])
    #expect(simulated.director.counts.extracting == 0 && simulated.director.counts.paused == 0)
  }

  @Test func `a play takes the place of what stands by`() throws {
    try standBy(simulated, router, at: 400)
    play(track: 2)
    try simulated.run(milliseconds: 100)
    #expect(events(router.takeLog()).prefix(3) == ["a ready", "a extracting", "a ready"])
  }

  // MARK: Handing over

  @Test func `it sends what is left at once, ends with the packet before, and says so`() throws {
    play(packets: 1_000)
    try hear(5)
    send(.handOver(positionMilliseconds: 200))
    try simulated.run(milliseconds: 1)
    let log = router.takeLog()
    #expect(places(log) == Array(stride(from: 0, to: 200, by: 20)))
    #expect(
      log.suffix(2).first?.hasPrefix("a timeline 180 at") == true && log.last == "a ended moved 200", "\(log)"
    )
    #expect(router.liveSessions.isEmpty && !router.hasPendingRequests)
  }

  @Test func `paused, it ends at once, unless it was to end elsewhere`() throws {
    play(packets: 1_000, start: 400, paused: true)
    send(.handOver(positionMilliseconds: 700))
    try simulated.run(milliseconds: 20)
    #expect(router.takeLog().last == "a error invalid_state")
    send(.handOver(positionMilliseconds: 400))
    try simulated.run(milliseconds: 20)
    #expect(router.takeLog().last == "a ended moved 400")
  }

  @Test func `what was sent, is far ahead or about to change is refused`() throws {
    play(packets: 1_000)
    try hear(5)
    send(.handOver(positionMilliseconds: 80))
    send(.handOver(positionMilliseconds: 1_120))
    try simulated.run(milliseconds: 20)
    #expect(events(router.takeLog()).suffix(2) == ["a error invalid_state", "a error invalid_state"])
    send(.pause)
    send(.handOver(positionMilliseconds: 200))
    try simulated.run(milliseconds: 100)
    let events = events(router.takeLog())
    #expect(events.count == 2 && events[0] == "a error invalid_state", "\(events)")
    #expect(events.last?.hasPrefix("a paused") == true, "\(events)")
  }

  /// Both engines, with the same clock: their packets are one row, of one rhythm.
  @Test(arguments: 0..<10) func `two engines sound like one`(offset: UInt64) throws {
    let second = SimulatedSessions()
    let heard = try second.connect(isLogging: true)
    play(packets: 1_000)
    simulated.wait(nanoseconds: offset * 1_700_000)
    second.wait(nanoseconds: offset * 1_700_000)
    try hear(10)
    second.wait(nanoseconds: simulated.now - second.now)
    try standBy(second, heard, at: 200)
    _ = (router.takeLog(), heard.takeLog())
    send(.status)
    try simulated.run(milliseconds: 1)
    second.wait(nanoseconds: simulated.now - second.now)
    let status = try #require(router.statuses[a])
    let position = status.positionMilliseconds! + 300
    let takeOver = EngineCommand.SessionAction.takeOver(
      positionMilliseconds: position, dueNanoseconds: status.dueNanoseconds! + 300_000_000)
    second.send(takeOver, to: a, as: second.requests.make(takeOver, from: heard, now: second.now))
    send(.handOver(positionMilliseconds: position))
    try simulated.run(milliseconds: 600)
    try second.run(milliseconds: 600)
    let (first, rest) = (router.takeLog(), heard.takeLog())
    #expect(first.last == "a ended moved \(position)")
    let places = places(first) + places(rest)
    #expect(zip(places, places.dropFirst()).allSatisfy { $1 - $0 == 20 }, "\(places)")
    let due = Int(status.dueNanoseconds! / 1_000_000) + 300
    #expect(times(first).allSatisfy { $0 < due } && abs(times(rest)[0] - due) <= 1, "\(first + rest)")
    #expect(!self.places(first).isEmpty && !self.places(rest).isEmpty)
  }
}
