import RouterCore
import WireProtocol

/// A promise of the playback's that was broken.
enum Violation: Equatable, CustomStringConvertible {
  case begunBesideAnother
  case wantsTwo
  case enginePlaysAnother(String)
  case followedEnd(String)
  case lost(String)
  case doubled(String)
  case skipped(String)
  case jumped(from: Int, to: Int)
  case answered(Int, times: Int)
  /// Nothing more can happen, and something is still waited for.
  case stuck(String)

  /// The invariant that it is of.
  enum Invariant: String, CaseIterable {
    case playsOneThing, nothingFollowsEnd, queueKeepsEntries, positionResumes, answersOnce, settles
  }

  var invariant: Invariant {
    switch self {
    case .begunBesideAnother, .wantsTwo, .enginePlaysAnother: .playsOneThing
    case .followedEnd: .nothingFollowsEnd
    case .lost, .doubled, .skipped: .queueKeepsEntries
    case .jumped: .positionResumes
    case .answered: .answersOnce
    case .stuck: .settles
    }
  }

  var description: String {
    switch self {
    case .begunBesideAnother: "a play began beside another"
    case .wantsTwo: "two plays are wanted at once"
    case .enginePlaysAnother(let what): "the engine plays another than the queue says: \(what)"
    case .followedEnd(let what): "after the end came \(what)"
    case .lost(let url): "the entry of \(url) is lost"
    case .doubled(let url): "the entry of \(url) is there twice"
    case .skipped(let url): "\(url) was left out"
    case .jumped(let from, let to): "heard up to \(from) ms, resumed at \(to) ms"
    case .answered(let number, let times): "the request \(number) was answered \(times) times"
    case .stuck(let what): "settled, and waits for \(what)"
    }
  }
}

/// One run: a client, a Router, its disk and an engine, in an order that the seed decides.
struct PlaybackSimulation {
  private var generator: SeededGenerator
  private var router: ModelRouter
  private var engine: ModelEngine
  private let id: SessionID
  private var trackCount = 0
  private var checkedRevision = -1
  private var isTraced: Bool
  private(set) var trace: [String] = []

  init(seed: UInt64, fault: ModelRouter.Fault = .none, isTraced: Bool = false) throws {
    generator = SeededGenerator(seed: seed)
    id = try SessionID("s")
    router = ModelRouter(id: id, fault: fault)
    engine = ModelEngine(id: id)
    self.isTraced = isTraced
  }

  /// - Returns: the first violation.
  mutating func run(stepCount: Int) -> Violation? {
    defer { note("the end") }
    note("connect")
    router.connect(engine.connect())
    for number in 0..<stepCount {
      step()
      // Now and then all comes to rest.
      if number % 60 == 59 { settle() }
      if let violation = check() { return violation }
    }
    settle()
    return check() ?? checkSettled()
  }

  private mutating func note(_ what: @autoclosure () -> String) {
    if isTraced {
      let playback = router.playback
      trace.append(
        "\(what())\n      \(playback.state) \(playback.reported.tag ?? "-") at \(router.countedMilliseconds)"
          + " starting \(playback.plan.starting?.request.tag ?? "-")"
          + " deferred \(playback.plan.deferredPlay?.tag ?? "-")"
          + " prepared \(playback.plan.prepared?.request.tag ?? "-")"
          + " queue \(Self.name(playback.plan.queue.current))"
          + " | \(playback.plan.queue.waiting.map { Self.name($0.entry) }.joined(separator: " "))"
          + " | \(playback.plan.queue.history.map { Self.name($0) }.joined(separator: " "))"
          + (playback.isQueueLoaded ? "" : " on disk") + (playback.isLost ? " lost" : "")
          + (playback.plan.isAwaitingPrepared ? " awaiting" : "")
          + (playback.plan.isStopping ? " stopping" : "")
          + " engine \(engine.play?.request.tag ?? engine.play?.request.url ?? "-")")
    }
  }

  private static func name(_ entry: QueueEntry?) -> String {
    entry.map { "\($0.id)=\($0.track.url.dropFirst(6))" } ?? "-"
  }

  // MARK: Steps

  private mutating func step() {
    switch Int.random(in: 0..<100, using: &generator) {
    case 0..<16: takeCommand()
    case 16..<32: deliverToEngine()
    case 32..<52: deliverToRouter()
    case 52..<60: openSource()
    case 60..<64: openNext()
    case 64..<76: finishWrite()
    case 76..<79: finishRead()
    case 79..<86: passTime()
    case 86..<90:
      note("retry")
      router.fireRetryTimers()
    case 90..<92:
      note("checkpoint")
      router.checkpoint()
    case 92..<94:
      note("release")
      router.releaseHeld()
    case 94..<96: breakSomething()
    case 96: operate()
    case 97: unload()
    default: reconnect()
    }
  }

  private mutating func deliverToEngine() {
    guard !router.outbox.isEmpty else { return }
    let (action, requestID) = router.outbox.removeFirst()
    let codes: [ErrorCode?] = [.overloaded, .tooManySessions, .invalidSource]
    let error = generator.oneIn(8) ? codes.randomElement(using: &generator)! : nil
    note("to engine: \(action)\(error.map { ", refused: \($0)" } ?? "")")
    engine.take(action, requestID, error: error)
  }

  private mutating func deliverToRouter() {
    guard router.isConnected, let message = engine.takeMessage() else { return }
    note("to Router: \(message)")
    router.receive(message)
  }

  private mutating func openSource() {
    let codes: [ErrorCode?] = [.sourceNotFound, .overloaded]
    let failure = generator.oneIn(5) ? codes.randomElement(using: &generator)! : nil
    note("open \(failure.map { "fails: \($0)" } ?? "")")
    engine.open(failure: failure)
  }

  private mutating func openNext() {
    let fails = generator.oneIn(4)
    note("open what follows\(fails ? ": fails" : "")")
    engine.openNext(fails: fails)
  }

  private mutating func finishWrite() {
    let succeeds = !generator.oneIn(8)
    let isClear = !generator.oneIn(8)
    note("disk \(succeeds ? "has written" : "is full")\(isClear ? "" : ", to wait")")
    router.finishWrite(succeeds: succeeds, clearance: isClear ? .send : .wait)
  }

  private mutating func finishRead() {
    guard router.isReading else { return }
    note("queue is read")
    router.finishRead()
  }

  private mutating func passTime() {
    let milliseconds = Int.random(in: 1...600, using: &generator) * WireLimits.packetDurationMilliseconds
    note("\(milliseconds) ms pass")
    engine.advance(milliseconds: milliseconds)
    router.housekeep()
  }

  private mutating func breakSomething() {
    switch Int.random(in: 0..<3, using: &generator) {
    case 0 where router.isConnected:
      note("connection lost")
      disconnect()
    case 1:
      note("engine dies")
      disconnect()
      engine.crash()
    default:
      note("Router dies")
      engine.disconnect()
      router.restart(during: engine.play)
    }
  }

  /// Of what was on its way to the engine, it has read a part.
  private mutating func disconnect() {
    if router.isConnected {
      for _ in 0..<Int.random(in: 0...router.outbox.count, using: &generator) { deliverToEngine() }
      router.disconnect()
    }
    engine.disconnect()
  }

  private mutating func reconnect() {
    guard !router.isConnected else { return }
    note("connect")
    router.connect(engine.connect())
  }

  private mutating func operate() {
    guard router.isConnected, generator.oneIn(3) else { return }
    let url = generator.oneIn(2) ? nil : newAddress()
    note("operator: \(url ?? "stop")")
    engine.operate(url: url)
  }

  private mutating func unload() {
    note("unload")
    router.unloadIfIdle()
  }

  // MARK: Commands

  private mutating func newAddress() -> String {
    trackCount += 1
    return "media:\(trackCount)"
  }

  private mutating func takeCommand() {
    let command = newCommand()
    note("client: \(command)")
    router.take(command)
  }

  private mutating func newCommand() -> ModelRouter.Command {
    let waiting = router.playback.plan.queue.waiting.map(\.entry.id)
    let id = waiting.randomElement(using: &generator) ?? "none"
    switch Int.random(in: 0..<20, using: &generator) {
    case 0..<6:
      let tracks = (0..<Int.random(in: 1...3, using: &generator)).map { _ in QueuedTrack(url: newAddress()) }
      return .queue(.add(tracks, at: generator.oneIn(3) ? .index(0) : .end))
    case 6: return .queue(.remove(id: id))
    case 7: return .queue(.move(id: id, position: Int.random(in: 0...3, using: &generator)))
    case 8: return .queue(.skip)
    case 9: return .queue(.skipTo(id: id))
    case 10: return .queue(.previous)
    case 11: return generator.oneIn(3) ? .queue(.clear) : .queue(.skip)
    case 12: return generator.oneIn(4) ? .queue(.loop(.queue)) : .queue(.loop(.off))
    case 13: return .play(newAddress())
    case 14: return .prepare(newAddress())
    case 15: return .stop
    case 16: return .volume(Double(Int.random(in: 1...4, using: &generator)) / 2)
    case 17: return .engine(.pause)
    case 18: return .engine(.resume)
    default: return .engine(.seek(positionMilliseconds: Int.random(in: 0...30_000, using: &generator)))
    }
  }

  // MARK: Rest

  /// Nothing is broken any more and nobody asks for anything: all that is on its way arrives.
  private mutating func settle() {
    note("settle")
    reconnect()
    for _ in 0..<200 where !isAtRest {
      router.checkpoint()
      while router.isWriting { router.finishWrite(succeeds: true, clearance: .send) }
      finishRead()
      while !router.outbox.isEmpty {
        let (action, requestID) = router.outbox.removeFirst()
        note("to engine: \(action)")
        engine.take(action, requestID, error: nil)
      }
      note("open")
      engine.open(failure: nil)
      engine.openNext(fails: false)
      while !engine.outbox.isEmpty { deliverToRouter() }
      note("retry, release")
      router.fireRetryTimers()
      router.releaseHeld()
    }
  }

  private var isAtRest: Bool {
    router.hasWritten && !router.isReading && !router.isHolding && router.outbox.isEmpty
      && engine.outbox.isEmpty
      && router.retryTimerCount == 0 && engine.play?.state != .extracting
      && (engine.next?.requestID == nil) && router.requests.values.allSatisfy { $0.answerCount > 0 }
  }

  // MARK: Invariants

  private mutating func check() -> Violation? {
    if let violation = router.violations.first { return violation }
    let plan = router.playback.plan
    if plan.starting != nil, plan.deferredPlay != nil { return .wantsTwo }
    guard router.playback.isQueueLoaded, plan.queueRevision != checkedRevision else { return nil }
    checkedRevision = plan.queueRevision
    return checkQueue(plan.queue)
  }

  private func checkQueue(_ queue: TrackQueue) -> Violation? {
    let here = queue.waiting.map(\.entry.track.url) + (queue.current.map { [$0.track.url] } ?? [])
    let history = queue.history.map(\.track.url)
    var seen: Set<String> = []
    for url in router.everLooped ? here : here + history where !seen.insert(url).inserted {
      if !router.namelessAddresses.contains(url) { return .doubled(url) }
    }
    let known = seen.union(history)
    let kept = router.acknowledgedAddresses.subtracting(router.removedAddresses)
      .subtracting(router.leavingAddresses)
    if let url = kept.sorted().first(where: { !known.contains($0) }) { return .lost(url) }
    let ended = engine.overAddresses.union(router.dismissedAddresses)
    return history.first { !ended.contains($0) }.map(Violation.skipped)
  }

  private func checkSettled() -> Violation? {
    for (requesterID, request) in router.requests where request.answerCount != 1 {
      return .answered(requesterID.number, times: request.answerCount)
    }
    let (playback, plan) = (router.playback, router.playback.plan)
    if plan.starting != nil { return .stuck("a play") }
    if plan.deferredPlay != nil { return .stuck("a deferred play") }
    if plan.isStopping { return .stuck("a stop") }
    if plan.isAwaitingPrepared { return .stuck("what was prepared") }
    if playback.isLost { return .stuck("what was lost") }
    guard engine.play?.request.tag == playback.reported.tag, engine.play?.request.url == playback.reported.url
    else {
      return .enginePlaysAnother(
        "\(engine.play?.request.tag ?? "nothing"), not \(playback.reported.tag ?? "nothing")")
    }
    if engine.play == nil, let current = plan.queue.current { return .stuck("\(current.track.url)") }
    if let url = engine.play?.request.url, playback.isQueueLoaded, plan.queue.current?.track.url != url {
      return .enginePlaysAnother("\(url), not \(plan.queue.current?.track.url ?? "nothing")")
    }
    return nil
  }
}
