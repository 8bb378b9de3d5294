import AudioEngineCore
import WireProtocol

/// One run of the director from a seed: commands at random, timelines that are slow, fail or end, a clock that stalls,
/// routers that come, go and do not read. Models check every message after each step.
struct SessionSimulation {
  /// What the simulation is tried with: something that a broken engine would do.
  enum Canary: CaseIterable {
    case dropsEvent, sendsPacketTwice, answersTwice, losesPacket, packetAfterEnd

    final class Strike {
      var hasHappened = false
    }
  }

  private enum Step {
    case command(SessionID, EngineCommand.SessionAction)
    /// Of the router with that number, which says by the epoch that it is the session's home.
    case homeCommand(SessionID, EngineCommand.SessionAction, epoch: UInt64, router: Int)
    case burst(SessionID, milliseconds: Int)
    case advance(UInt64)
    case produce(Int)
    case tellChange, giveTimeline
    case giveSplice(isFailing: Bool)
    case connect, disconnect
    case blocks(Bool)
    case isFull(Bool)
    case splices(atOnce: Int, hasRoom: Bool, leadNanoseconds: UInt64)
    case trims

    var words: String {
      switch self {
      case .command(let id, let action): "\(action) to \(id)"
      case .homeCommand(let id, let action, let epoch, let router):
        "\(action) to \(id) of router \(router), epoch \(epoch)"
      case .burst(let id, let milliseconds): "burst of \(milliseconds) ms of \(id)"
      case .advance(let nanoseconds): "\(Double(nanoseconds) / 1e6) ms pass"
      default: "\(self)"
      }
    }
  }

  private static let tracks = 1...6
  private static let sessionIDs = ["a", "b", "c", "d"].map { try! SessionID($0) }
  /// The one that has homes; what is heard of it is checked less strictly.
  private static let movingID = sessionIDs[3]

  private let seed: UInt64
  private var random: SplitMix64
  private let simulated = SimulatedSessions(maximumSessions: 3)
  private var trace: [Step] = []
  /// Packets that each producer makes in 20 ms.
  private var speed = 4
  private var canary: Canary?
  private let strike = Canary.Strike()

  init(seed: UInt64, canary: Canary? = nil) {
    self.seed = seed
    self.canary = canary
    random = SplitMix64(state: seed)
    for track in Self.tracks {
      simulated.requests.setPacketCount(Int.random(in: 1...120, using: &random), ofTrack: track)
    }
  }

  /// - Throws: `Violation`, with the seed and the last steps.
  mutating func run(steps: Int) throws(Violation) {
    do {
      try connect()
      // Without them there would be nothing to hear for a third of the steps.
      for id in Self.sessionIDs.prefix(2) { command(.play(randomPlay()), to: id) }
      for _ in 0..<steps { try takeStep() }
      try finish()
    } catch {
      let steps = trace.suffix(30).map { "  \($0.words)" }.joined(separator: "\n")
      throw Violation("seed \(seed): \(error)\n\(steps)")
    }
  }

  /// Whether the canary has done what it does.
  var hasStruck: Bool { strike.hasHappened }
  var packetCount: Int { simulated.director.counts.packets }
  /// Of the routers that are there at the end.
  var burstPacketCount: Int { simulated.routers.reduce(0) { $0 + $1.burstPacketCount } }

  private mutating func chance(_ percent: Int) -> Bool { Int.random(in: 0..<100, using: &random) < percent }

  // MARK: Steps

  private mutating func takeStep() throws(Violation) {
    switch Int.random(in: 0..<100, using: &random) {
    // Where nothing plays, nothing comes of time.
    case 0..<45 where simulated.director.roundDeadlineNanoseconds == nil: commands()
    case 0..<60: for _ in 0..<Int.random(in: 1...6, using: &random) { try advance() }
    case 60..<78: commands()
    case 78..<96: happenElsewhere()
    default: try changeSurroundings()
    }
    try simulated.requests.checkAnswers(isEnd: false)
  }

  /// Time passes: mostly as the director wants it, at times with a late wake or a stall.
  private mutating func advance() throws(Violation) {
    let now = simulated.now
    let wanted =
      simulated.director.deadlineNanoseconds(now: now).map { $0 > now ? $0 - now : 0 } ?? 10_000_000
    let late: UInt64 =
      switch Int.random(in: 0..<100, using: &random) {
      case 0..<70: UInt64.random(in: 0..<1_000_000, using: &random)
      case 70..<95: UInt64.random(in: 0..<60_000_000, using: &random)
      case 95..<99: UInt64.random(in: 60_000_000..<2_000_000_000, using: &random)
      default: 40_000_000_000
      }
    let passed = wanted + late
    trace.append(.advance(passed))
    if chance(60) { simulated.deliverAll() }
    simulated.wait(nanoseconds: passed)
    let produced = Int(min(passed, 1_000_000_000) / 20_000_000 + 1) * speed
    for producer in simulated.producers { simulated.produce(produced, by: producer) }
    try simulated.step()
  }

  /// Some at once, so that each comes while the one before it is not done.
  private mutating func commands() {
    let id = Self.sessionIDs.randomElement(using: &random)!
    for _ in 0..<Int.random(in: 1...3, using: &random) {
      switch Int.random(in: 0..<100, using: &random) {
      case 0..<15: burst(of: id)
      case 15..<60 where id == Self.movingID && canary == nil: homeCommands(to: id)
      case 60..<64 where canary == nil: takeOver(id)
      default: command(randomAction(), to: id)
      }
    }
  }

  /// A Router that becomes a session's home asks where it is before anything else.
  private mutating func homeCommands(to id: SessionID) {
    guard let number = simulated.routers.indices.randomElement(using: &random) else { return }
    let epoch = UInt64.random(in: 1...20, using: &random)
    simulated.requests.setMayHaveOwner(id)
    for action in [.status, randomAction()] {
      trace.append(.homeCommand(id, action, epoch: epoch, router: number))
      let request = simulated.requests.make(
        action, from: simulated.routers[number], epoch: epoch, now: simulated.now)
      simulated.send(action, to: id, as: request)
    }
  }

  /// What another engine plays is to go on here. It may be that it is not open in time.
  private mutating func takeOver(_ id: SessionID) {
    let position = randomPosition()
    command(.standBy(randomPlay(), positionMilliseconds: position), to: id)
    if chance(80) {
      for producer in simulated.producers { simulated.produce(20, by: producer) }
      simulated.deliverAll()
    }
    let due = simulated.now + UInt64.random(in: 0..<300_000_000, using: &random)
    let takeOver = EngineCommand.SessionAction.takeOver(
      positionMilliseconds: position + 20 * Int.random(in: 0..<15, using: &random),
      dueNanoseconds: chance(80) ? due : nil)
    for _ in 0..<Int.random(in: 1...2, using: &random) { command(takeOver, to: id) }
  }

  private mutating func burst(of id: SessionID) {
    let milliseconds = Int.random(in: 0...3_000, using: &random)
    trace.append(.burst(id, milliseconds: milliseconds))
    let router = chance(90) ? simulated.routers.randomElement(using: &random) : nil
    simulated.burst(milliseconds, of: id, as: simulated.requests.make(nil, from: router, now: simulated.now))
  }

  private mutating func command(_ action: EngineCommand.SessionAction, to id: SessionID) {
    trace.append(.command(id, action))
    let router = chance(70) ? simulated.routers.randomElement(using: &random) : nil
    simulated.send(action, to: id, as: simulated.requests.make(action, from: router, now: simulated.now))
  }

  private mutating func randomAction() -> EngineCommand.SessionAction {
    switch Int.random(in: 0..<100, using: &random) {
    case 0..<30: .play(randomPlay())
    case 30..<40: .prepare(randomPlay())
    case 40..<42: .unprepare
    case 42..<50: .pause
    case 50..<64: .resume
    case 64..<67: .stop
    case 67..<80: .seek(positionMilliseconds: randomPosition())
    case 80..<92: .volume(randomVolume())
    case 92..<96: .status
    case 96..<98: .handOver(positionMilliseconds: randomPosition())
    default: .why
    }
  }

  private mutating func randomPlay() -> PlayRequest {
    let start = chance(60) ? 0 : randomPosition()
    return simulated.requests.makePlay(
      track: Int.random(in: Self.tracks, using: &random), startMilliseconds: start,
      endMilliseconds: chance(75) ? nil : start + 1 + randomPosition(), volume: randomVolume(),
      loop: chance(25), paused: chance(10))
  }

  private mutating func randomPosition() -> Int { Int.random(in: 0..<2_500, using: &random) }
  private mutating func randomVolume() -> Double { chance(60) ? 1 : 0.5 }

  private mutating func happenElsewhere() {
    switch Int.random(in: 0..<10, using: &random) {
    case 0..<3:
      guard let producer = simulated.producers.randomElement(using: &random) else { return }
      let count = Int.random(in: 1...60, using: &random)
      if chance(5) { producer.failingIndex = Int.random(in: 0..<100, using: &random) }
      trace.append(.produce(count))
      simulated.produce(count, by: producer)
    case 3..<6:
      guard !simulated.changed.isEmpty else { return }
      trace.append(.tellChange)
      simulated.deliverChange(at: Int.random(in: simulated.changed.indices, using: &random))
    case 6..<8:
      guard simulated.acquisitionCount > 0 else { return }
      trace.append(.giveTimeline)
      simulated.deliverAcquisition()
    default:
      guard simulated.spliceCount > 0 else { return }
      let isFailing = chance(5)
      trace.append(.giveSplice(isFailing: isFailing))
      simulated.deliverSplice(isFailing: isFailing)
    }
  }

  private mutating func changeSurroundings() throws(Violation) {
    switch Int.random(in: 0..<8, using: &random) {
    case 0: speed = [0, 1, 2, 4, 40].randomElement(using: &random)!
    case 1 where simulated.routers.count < 3: try connect()
    case 2:
      guard let router = simulated.routers.randomElement(using: &random) else { return }
      trace.append(.disconnect)
      simulated.disconnect(router)
    case 3, 4:
      guard let router = simulated.routers.randomElement(using: &random) else { return }
      let blocks = chance(40)
      trace.append(.blocks(blocks))
      router.allowance = blocks ? Int.random(in: 0..<2_000, using: &random) : .max
    case 5:
      let isFull = chance(40)
      trace.append(.isFull(isFull))
      simulated.setFull(isFull)
    case 6:
      let atOnce = Int.random(in: 1...4, using: &random)
      let hasRoom = chance(70)
      let lead: UInt64 = chance(70) ? 4_000_000 : 60_000_000
      trace.append(.splices(atOnce: atOnce, hasRoom: hasRoom, leadNanoseconds: lead))
      simulated.effects.waiting.withLock {
        $0.splicesAtOnce = atOnce
        $0.maximumWaitingSplices = hasRoom ? 128 : 0
        $0.leadNanoseconds = lead
      }
    default:
      guard let producer = simulated.producers.randomElement(using: &random) else { return }
      trace.append(.trims)
      producer.timeline.markUncacheable()
    }
  }

  private mutating func connect() throws(Violation) {
    trace.append(.connect)
    let router = try simulated.connect()
    guard let canary else { return }
    router.sabotage = canary.sabotage(after: Int.random(in: 0..<5, using: &random), noting: strike)
  }

  // MARK: The end

  /// Lets everything come to an end: no request may be left without its answer, and no session without its end.
  private mutating func finish() throws(Violation) {
    simulated.setFull(false)
    simulated.effects.waiting.withLock { $0.maximumWaitingSplices = 128 }
    for router in simulated.routers { router.allowance = .max }
    for _ in 0..<6 {
      for producer in simulated.producers { simulated.produce(1_000, by: producer) }
      // More than the half second for which a transition may be put off, and the second until a session is handed over.
      try simulated.run(milliseconds: 200)
    }
    try checkAnswers()
    for id in Self.sessionIDs {
      let stop = simulated.requests.make(.stop, from: nil, now: simulated.now)
      simulated.send(.stop, to: id, as: stop)
    }
    for _ in 0..<3 { try simulated.run(milliseconds: 200) }
    try checkAnswers()
    for router in simulated.routers {
      guard router.liveSessions.isEmpty else { throw Violation("not ended: \(router.liveSessions.keys)") }
    }
    let counts = simulated.director.counts
    guard counts.extracting == 0, counts.streaming == 0, counts.paused == 0 else {
      throw Violation("counted though they ended: \(counts)")
    }
  }

  /// Checks that nobody waits: what was asked for is done, or was refused.
  private func checkAnswers() throws(Violation) {
    try simulated.requests.checkAnswers(isEnd: true)
    for router in simulated.routers {
      guard router.isUpToDate, !router.hasPendingRequests else {
        throw Violation("not answered: \(router.pendingRequests)")
      }
    }
  }
}

extension SessionSimulation.Canary {
  /// What it does to the messages of one connection, once, after so many of its kind.
  func sabotage(after count: Int, noting strike: Strike) -> ModelRouter.Sabotage {
    var count = count
    var hasEnded: SessionID?
    return { message in
      guard count >= 0 else { return [message] }
      let event: EngineEvent? =
        if case .event(let json) = message { try? EngineEvent.decode(json) } else { nil }
      let isAudio = if case .audio = message { true } else { false }
      let isMatching: Bool =
        switch self {
        case .dropsEvent: event.map(\.isChange) ?? false
        case .sendsPacketTwice, .losesPacket: isAudio
        case .answersTwice: event?.requestID != nil
        case .packetAfterEnd: isAudio || hasEnded != nil
        }
      if case .packetAfterEnd = self, case .ended? = event?.body { hasEnded = event?.sessionID }
      guard isMatching else { return [message] }
      count -= 1
      guard count < 0 else { return [message] }
      switch self {
      case .dropsEvent, .losesPacket:
        strike.hasHappened = true
        return []
      case .sendsPacketTwice, .answersTwice:
        strike.hasHappened = true
        return [message, message]
      case .packetAfterEnd:
        let packet = SimulatedPacket(track: 1, volume: 10, positionMilliseconds: 0)
        guard let hasEnded else {
          count = 0
          return [message]
        }
        strike.hasHappened = true
        return [.audio(hasEnded, packet.bytes[...]), message]
      }
    }
  }
}

extension EngineEvent {
  /// Whether the state of a session is another after it, or its place.
  fileprivate var isChange: Bool {
    switch body {
    case .extracting, .ready, .playing, .paused, .resumed, .seeked, .ended: true
    default: false
    }
  }
}
