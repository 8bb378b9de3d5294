import Testing
import WireProtocol

/// Which connection is sent a session's audio, where several Routers share the engine.
extension PacingRulesTests {
  private func send(_ action: EngineCommand.SessionAction, from home: ModelRouter, epoch: UInt64?) {
    simulated.requests.setMayHaveOwner(a)
    let request = simulated.requests.make(action, from: home, epoch: epoch, now: simulated.now)
    simulated.send(action, to: a, as: request)
  }

  private func burst(from home: ModelRouter, epoch: UInt64) {
    simulated.requests.setMayHaveOwner(a)
    let request = simulated.requests.make(nil, from: home, epoch: epoch, now: simulated.now)
    simulated.burst(100, of: a, as: request)
  }

  private func connect() throws -> ModelRouter { try simulated.connect(isLogging: true) }

  /// The places of the packets that a router was sent.
  private func places(_ log: [String]) -> [Int] {
    log.filter { $0.contains(" at ") }.compactMap { Int($0.split(separator: " ")[2]) }
  }

  private func isContiguous(_ places: [Int]) -> Bool {
    zip(places, places.dropFirst()).allSatisfy { $1 - $0 == 20 }
  }

  /// Plays to two routers, and has the first own the session.
  private func playOwned(epoch: UInt64 = 5, packets: Int = 1_000) throws -> ModelRouter {
    let other = try connect()
    play(packets: packets)
    send(.status, from: router, epoch: epoch)
    try hear(5)
    _ = (router.takeLog(), other.takeLog())
    return other
  }

  /// Who is sent packets of the session now.
  private func hearers(_ routers: ModelRouter...) throws -> [Bool] {
    for router in routers { _ = router.takeLog() }
    try simulated.run(milliseconds: 100)
    return routers.map { !places($0.takeLog()).isEmpty }
  }

  // MARK: Ownership

  @Test func `a session without an epoch is sent to all`() throws {
    let other = try connect()
    play()
    send(.status, to: a)
    try hear(5)
    let log = router.takeLog()
    #expect(places(log) == [0, 20, 40, 60, 80] && places(log) == places(other.takeLog()))
  }

  @Test func `who plays with an epoch is sent the audio alone, and all are told what happens`() throws {
    let other = try connect()
    simulated.requests.setPacketCount(100, ofTrack: 1)
    send(.play(simulated.requests.makePlay(track: 1)), from: router, epoch: 5)
    produce(101)
    simulated.deliverAll()
    try hear(5)
    send(.pause, from: router, epoch: 5)
    try simulated.run(milliseconds: 100)
    let (log, told) = (router.takeLog(), other.takeLog())
    #expect(places(log).count >= 5 && isContiguous(places(log)))
    #expect(places(told).isEmpty)
    #expect(told.contains("a extracting") && told.contains("a ready"))
    #expect(told.last?.hasPrefix("a paused") == true && told.last == log.last)
  }

  @Test func `a new owner counts from the place that its status names, and no packet is lost or heard twice`()
    throws
  {
    let other = try playOwned()
    for epoch in UInt64(6)..<20 {
      let (old, new) = epoch % 2 == 0 ? (router, other) : (other, router)
      simulated.wait(nanoseconds: 3_000_000)
      send(.status, from: new, epoch: epoch)
      let told = simulated.now
      try simulated.run(milliseconds: 97)
      let (before, after) = (old.takeLog(), new.takeLog())
      #expect(places(before).isEmpty)
      #expect(after.first == "a status")
      let status = try #require(new.statuses[a])
      #expect(places(after).first == status.positionMilliseconds)
      #expect(isContiguous(places(after)) && places(after).count == 5)
      let due = try #require(status.dueNanoseconds)
      #expect(due + 20_000_000 > told && Int(due / 1_000_000) <= times(after)[0])
    }
    #expect(simulated.director.counts.rebases == 0 && simulated.director.counts.underruns == 0)
  }

  @Test func `what a batch has of both owners goes to each`() throws {
    let other = try playOwned()
    // Nothing is sent in between: a tick that is late, and the command behind it in the same batch.
    simulated.wait(nanoseconds: 50_000_000)
    simulated.director.step(now: simulated.now)
    send(.status, from: other, epoch: 6)
    simulated.wait(nanoseconds: 50_000_000)
    try simulated.step()
    let (before, after) = (places(router.takeLog()), places(other.takeLog()))
    #expect(!before.isEmpty && !after.isEmpty && isContiguous(before + after))
  }

  @Test func `a burst that takes a session over has its next packet behind it`() throws {
    let other = try playOwned()
    burst(from: other, epoch: 6)
    try simulated.run(milliseconds: 100)
    let log = other.takeLog()
    #expect(log.first == "a burst" && places(log).count == 10 && isContiguous(places(log)))
    #expect(places(router.takeLog()).isEmpty)
  }

  @Test func `a burst goes to who asks, not to the session's owner`() throws {
    let other = try playOwned()
    let request = simulated.requests.make(nil, from: other, now: simulated.now)
    simulated.burst(100, of: a, as: request)
    try simulated.run(milliseconds: 100)
    #expect(places(other.takeLog()).count == 5 && places(router.takeLog()).count == 5)
  }

  // MARK: Epochs

  @Test func `an old owner's commands are refused and do nothing`() throws {
    let other = try playOwned(epoch: 5)
    send(.status, from: other, epoch: 7)
    try simulated.run(milliseconds: 20)
    _ = (router.takeLog(), other.takeLog())
    let play = simulated.requests.makePlay(track: 2)
    let actions: [EngineCommand.SessionAction] = [
      .play(play), .prepare(play), .unprepare, .pause, .resume, .stop, .seek(positionMilliseconds: 0),
      .volume(0.5), .mute([]), .status, .why,
    ]
    for (number, action) in actions.enumerated() { send(action, from: router, epoch: UInt64(number % 7)) }
    burst(from: router, epoch: 6)
    try simulated.run(milliseconds: 1_000)
    let log = router.takeLog()
    #expect(log == Array(repeating: "a error stale_home", count: actions.count + 1))
    #expect(!router.hasPendingRequests)
    let heard = other.takeLog()
    #expect(events(heard).isEmpty && places(heard).count == 50 && isContiguous(places(heard)))
  }

  @Test func `a refusal says both epochs, and is the requester's to handle`() throws {
    let other = try playOwned(epoch: 5)
    send(.pause, from: other, epoch: 4)
    try simulated.run(milliseconds: 20)
    #expect(other.lastError?.code == .staleHome && other.lastError?.severity == .common)
    #expect(other.lastError?.message.contains("epoch is 5, not 4") == true)
  }

  @Test func `of one home's connections the later one owns`() throws {
    let other = try playOwned(epoch: 5)
    send(.status, from: other, epoch: 5)
    #expect(try hearers(router, other) == [false, true])
    // What was on its way is done, and takes nothing back.
    send(.pause, from: router, epoch: 5)
    try simulated.run(milliseconds: 100)
    #expect(other.takeLog().last?.hasPrefix("a paused") == true)
    send(.resume, from: router, epoch: 5)
    #expect(try hearers(router, other) == [false, true])
  }

  @Test func `a command without an epoch is carried out and changes no owner`() throws {
    let other = try playOwned()
    send(.seek(positionMilliseconds: 2_000), from: other, epoch: nil)
    send(.status, from: other, epoch: nil)
    try simulated.run(milliseconds: 100)
    #expect(other.takeLog().contains { $0.hasPrefix("a seeked 2000") })
    #expect(try hearers(router, other) == [true, false])
  }

  @Test func `a refused command of a later home takes the session all the same`() throws {
    let other = try playOwned()
    send(.resume, from: other, epoch: 6)
    send(.status, from: other, epoch: nil)
    try simulated.run(milliseconds: 20)
    #expect(other.takeLog().prefix(2) == ["a error invalid_state", "a status"])
    #expect(try hearers(router, other) == [false, true])
  }

  // MARK: Connections that end

  @Test func `when its owner's connection ends a session plays on for nobody, until somebody owns it again`()
    throws
  {
    let other = try playOwned(epoch: 5)
    simulated.disconnect(router)
    #expect(try hearers(other) == [false])
    send(.seek(positionMilliseconds: 3_000), from: other, epoch: nil)
    try simulated.run(milliseconds: 200)
    #expect(other.takeLog().contains { $0.hasPrefix("a seeked 3000") })
    // The same home on a connection that is no later, and behind it a home that was overtaken.
    send(.status, from: other, epoch: 5)
    send(.status, from: other, epoch: 4)
    try simulated.run(milliseconds: 100)
    let log = other.takeLog()
    #expect(Array(log.prefix(2)) == ["a status", "a error stale_home"])
    #expect(places(log).first == other.statuses[a]?.positionMilliseconds && isContiguous(places(log)))
    #expect(places(log).count == 5)
  }

  @Test func `a connection that comes is sent nothing of what others own`() throws {
    let other = try playOwned()
    let third = try connect()
    #expect(try hearers(router, other, third) == [true, false, false])
    #expect(third.liveSessions[a] != nil)
  }

  @Test func `packets that another connection owns are not counted as dropped`() throws {
    let other = try playOwned()
    other.allowance = 0
    router.allowance = 0
    // The queue of a connection that reads nothing holds two seconds.
    try simulated.run(milliseconds: 3_000)
    let sent = simulated.director.counts.packets
    send(.status, from: other, epoch: 6)
    try simulated.run(milliseconds: 3_000)
    router.allowance = .max
    other.allowance = .max
    send(.pause, from: other, epoch: 6)
    try simulated.run(milliseconds: 100)
    let old = router.takeLog()
    let new = other.takeLog()
    // All that it owned was lost, but what had gone out before.
    #expect(places(old).isEmpty && old.count == 2 && old[0] == "a dropped 150", "\(old)")
    #expect(new[0] == "a status" && new[1].hasPrefix("a dropped "))
    let dropped = Int(new[1].dropFirst("a dropped ".count)) ?? 0
    #expect(dropped + places(new).count == simulated.director.counts.packets - sent)
    let place = try #require(other.statuses[a]?.positionMilliseconds)
    #expect(places(new).first == place + 20 * dropped && isContiguous(places(new)))
  }

  // MARK: What keeps its owner

  @Test func `a seek and its fades keep the owner`() throws {
    let other = try playOwned()
    send(.seek(positionMilliseconds: 1_000), from: router, epoch: 5)
    try simulated.run(milliseconds: 200)
    let kinds = router.takeLog().drop { !$0.contains("fadeOut") }.map { $0.split(separator: " ")[1] }
    #expect(kinds.prefix(7) == ["fadeOut", "seeked", "fadeIn", "fadeIn", "fadeIn", "fadeIn", "timeline"])
    let told = other.takeLog()
    #expect(places(told).isEmpty && events(told).count == 1)
  }

  @Test func `a takeover during a fade has the rest of it`() throws {
    let other = try playOwned()
    send(.seek(positionMilliseconds: 1_000), from: router, epoch: 5)
    simulated.deliverAll()
    while !router.log.contains(where: { $0.contains("fadeIn") }) { try simulated.run(milliseconds: 1) }
    send(.status, from: other, epoch: 6)
    let before = router.takeLog()
    try simulated.run(milliseconds: 100)
    let log = other.takeLog().drop { $0 != "a status" }
    #expect(log.dropFirst().prefix(3).allSatisfy { $0.contains("fadeIn") })
    #expect(places(Array(log)).first == places(before).last! + 20 && places(router.takeLog()).isEmpty)
  }

  @Test func `a track that follows keeps the owner, and its epoch`() throws {
    simulated.requests.setPacketCount(100, ofTrack: 2)
    let other = try playOwned(packets: 20)
    send(.prepare(simulated.requests.makePlay(track: 2)), from: router, epoch: 5)
    produce(200)
    try simulated.run(milliseconds: 600)
    let log = router.takeLog()
    #expect(events(log).contains("a ended finished 400") && places(log).contains(0))
    #expect(places(other.takeLog()).isEmpty)
    send(.stop, from: other, epoch: 4)
    #expect(try hearers(router, other) == [true, false])
  }

  @Test(arguments: [nil, UInt64(5)])
  func `a track that takes another's place keeps the owner`(epoch: UInt64?) throws {
    let other = try playOwned()
    send(.play(simulated.requests.makePlay(track: 2)), from: epoch == nil ? other : router, epoch: epoch)
    produce(200)
    try simulated.run(milliseconds: 200)
    #expect(events(router.takeLog()).contains { $0.hasPrefix("a ended replaced") })
    #expect(try hearers(router, other) == [true, false])
  }

  @Test func `a home that takes over while a track is replaced owns the new one`() throws {
    let other = try playOwned()
    send(.play(simulated.requests.makePlay(track: 2)), from: router, epoch: 5)
    send(.status, from: other, epoch: 6)
    produce(200)
    try simulated.run(milliseconds: 200)
    #expect(events(other.takeLog()).contains { $0.hasPrefix("a ended replaced") })
    #expect(try hearers(router, other) == [false, true])
  }

  @Test func `an epoch is forgotten with its session`() throws {
    let other = try playOwned(epoch: 5)
    send(.stop, from: router, epoch: 5)
    try simulated.run(milliseconds: 100)
    send(.play(simulated.requests.makePlay(track: 1)), from: other, epoch: 2)
    produce(200)
    try simulated.run(milliseconds: 100)
    #expect(try hearers(router, other) == [false, true])
    send(.stop, from: other, epoch: 2)
    try simulated.run(milliseconds: 100)
    play(track: 3)
    #expect(try hearers(router, other) == [true, true])
  }

  @Test func `why says that the home is not connected`() throws {
    _ = try playOwned()
    simulated.disconnect(router)
    let why = simulated.requests.make(.why, from: nil, now: simulated.now)
    simulated.send(.why, to: a, as: why)
    let summaries = simulated.requests.answers().compactMap { event in
      if case .why(let diagnosis) = event.body { diagnosis.summary } else { nil }
    }
    #expect(summaries == ["It plays, and the Router that is its home is not connected."])
  }
}
