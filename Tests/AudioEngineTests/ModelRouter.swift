import AudioEngineCore
import Synchronization
import WireProtocol

/// What must not happen.
struct Violation: Error, CustomStringConvertible {
  let description: String

  init(_ description: String) { self.description = description }
}

/// What was asked of the engine, so that models know what may come of it.
final class SimulatedRequests: Sendable {
  private struct State {
    var requestCount: UInt64 = 0
    var routerCount: UInt64 = 0
    var plays: [String: PlayRequest] = [:]
    var seeks: [String: Int] = [:]
    /// Sessions that another engine may have played before.
    var takenOver: Set<SessionID> = []
    /// Sessions that may have been told to end, and send what is left at once.
    var handedOver: Set<SessionID> = []
    var routers: [String: RouterConnection.ID] = [:]
    /// Answers by the HTTP request that waits for them.
    var answers: [String: [EngineEvent]] = [:]
    var packetCounts: [Int: Int] = [:]
    /// Sessions of which some commands had an epoch.
    var mayHaveOwner: Set<SessionID> = []
  }

  private let state = Mutex(State())

  func nextRouterID() -> RouterConnection.ID {
    state.withLock {
      $0.routerCount += 1
      return RouterConnection.ID(number: $0.routerCount)
    }
  }

  private func nextName() -> String {
    state.withLock {
      $0.requestCount += 1
      return "\($0.requestCount)"
    }
  }

  /// - Parameters:
  ///   - action: nil for a burst.
  ///   - router: who asks; nil for one HTTP request.
  func make(
    _ action: EngineCommand.SessionAction?, from router: ModelRouter?, epoch: UInt64? = nil, now: UInt64
  ) -> PendingRequest {
    let name = nextName()
    if case .seek(let position) = action { state.withLock { $0.seeks[name] = position } }
    if let router {
      state.withLock { $0.routers[name] = router.id }
      router.requested(name)
      return PendingRequest(.router(router.id), requestID: name, epoch: epoch, askedNanoseconds: now)
    }
    state.withLock { $0.answers[name] = [] }
    let answer: @Sendable (EngineEvent) -> Void = { [self] event in
      state.withLock { $0.answers[name]!.append(event) }
    }
    return PendingRequest(.closure(answer), askedNanoseconds: now)
  }

  /// A play with a tag of its own, which is how models know it.
  func makePlay(
    track: Int, startMilliseconds: Int = 0, endMilliseconds: Int? = nil, volume: Double = 1,
    loop: Bool = false, paused: Bool = false
  ) -> PlayRequest {
    let play = PlayRequest(
      url: "media:\(track)", startMilliseconds: startMilliseconds, endMilliseconds: endMilliseconds,
      volume: volume, loop: loop, paused: paused, tag: nextName())
    state.withLock { $0.plays[play.tag!] = play }
    return play
  }

  func isAsked(_ requestID: String, by router: ModelRouter) -> Bool {
    state.withLock { $0.routers[requestID] == router.id }
  }

  /// A command with an epoch is to come.
  func setMayHaveOwner(_ id: SessionID) { state.withLock { _ = $0.mayHaveOwner.insert(id) } }
  func mayHaveOwner(_ id: SessionID) -> Bool { state.withLock { $0.mayHaveOwner.contains(id) } }

  func play(_ tag: String?) -> PlayRequest? { state.withLock { state in tag.flatMap { state.plays[$0] } } }
  func seek(_ requestID: String) -> Int? { state.withLock { $0.seeks[requestID] } }

  /// A session is to begin in the midst of things.
  func setHandedOver(_ id: SessionID) { state.withLock { _ = $0.handedOver.insert(id) } }
  func isHandedOver(_ id: SessionID) -> Bool { state.withLock { $0.handedOver.contains(id) } }
  func setTakenOver(_ id: SessionID) { state.withLock { _ = $0.takenOver.insert(id) } }
  func isTakenOver(_ id: SessionID) -> Bool { state.withLock { $0.takenOver.contains(id) } }

  func setPacketCount(_ count: Int, ofTrack track: Int) { state.withLock { $0.packetCounts[track] = count } }
  func packetCount(ofTrack track: Int) -> Int { state.withLock { $0.packetCounts[track] ?? 100 } }

  /// Checks that no HTTP request was answered twice, or at the end not at all.
  func checkAnswers(isEnd: Bool) throws(Violation) {
    let wrong = state.withLock { state in
      state.answers.first { $0.value.count > 1 || isEnd && $0.value.isEmpty }
    }
    if let wrong { throw Violation("HTTP request \(wrong.key) has \(wrong.value.count) answers") }
  }

  func answers() -> [EngineEvent] { state.withLock { $0.answers.values.flatMap { $0 } } }
}

/// A router as the protocol describes it: it follows every session by what it is told alone, and knows the place and
/// the time of each packet by counting. What cannot be is a `Violation`.
final class ModelRouter {
  /// Breaks what the engine says, so that the checks can be tried.
  typealias Sabotage = (MessageDecoder.Message) -> [MessageDecoder.Message]

  let id: RouterConnection.ID
  private let requests: SimulatedRequests
  private var outbox = RouterOutbox()
  private var decoder = MessageDecoder()
  private var sessions: [SessionID: ModelSession] = [:]
  /// What is left of a burst, and the place of its next packet.
  private var burst: (id: SessionID, packetsLeft: Int, positionMilliseconds: Int)?
  /// Packets that came in bursts.
  private(set) var burstPacketCount = 0
  private var isGreeted = false
  /// The last `status` of each session.
  private(set) var statuses: [SessionID: SessionSnapshot] = [:]
  private(set) var lastError: ErrorReport?
  /// Whether `hello` may have had no room for some sessions.
  private var mayHearOfMore = false
  private var waiting: Set<String> = []
  /// Bytes that its socket takes before it is full.
  var allowance = Int.max
  var sabotage: Sabotage?
  private let isLogging: Bool
  private(set) var log: [String] = []

  init(requests: SimulatedRequests, isLogging: Bool = false) {
    id = requests.nextRouterID()
    self.requests = requests
    self.isLogging = isLogging
  }

  /// Whether it has been given everything.
  var isUpToDate: Bool { outbox.isEmpty }
  var hasPendingRequests: Bool { !waiting.isEmpty }
  var pendingRequests: [String] { waiting.sorted() }
  /// Sessions that are there.
  var liveSessions: [SessionID: ModelSession] { sessions }

  func requested(_ requestID: String) { waiting.insert(requestID) }
  func forgetRequests() { waiting = [] }

  /// Takes the log, and with it what was heard so far.
  func takeLog() -> [String] {
    defer { log = [] }
    return log
  }

  func receive(_ batch: MessageBatch, now: UInt64) throws(Violation) {
    var taken: [UInt8] = []
    let result = outbox.send(batch, to: id, nowNanoseconds: now) { bytes in
      let count = min(allowance, bytes.count)
      taken += bytes[..<count]
      if allowance < .max { allowance -= count }
      return count
    }
    guard result != .failed else { throw Violation("the connection failed") }
    decoder.append(taken)
    do {
      while let message = try decoder.next() {
        guard let sabotage else {
          try receive(message, now: now)
          continue
        }
        for message in sabotage(message) { try receive(message, now: now) }
      }
    } catch let violation as Violation {
      throw violation
    } catch {
      throw Violation("\(error)")
    }
  }

  private func receive(_ message: MessageDecoder.Message, now: UInt64) throws {
    switch message {
    case .audio(let id, let bytes):
      let packet = SimulatedPacket(bytes)
      if isLogging { log.append("\(id) \(packet.kind) \(packet.positionMilliseconds) at \(now / 1_000_000)") }
      guard sessions[id] != nil else { throw Violation("\(id): a packet, and no session") }
      guard burst == nil else { return try takeOfBurst(packet, of: id) }
      try sessions[id]!.hear(packet, now: now)
    case .event(let json):
      guard burst == nil else { throw Violation("an event in a burst") }
      let event = try EngineEvent.decode(json)
      if isLogging { log.append("\(event.sessionID.map { "\($0) " } ?? "")\(event.body.words)") }
      try receive(event)
    }
  }

  /// What was played before is heard again up to the very packet that comes next.
  private func takeOfBurst(_ packet: SimulatedPacket, of id: SessionID) throws(Violation) {
    guard var burst, burst.id == id else { throw Violation("\(id): a packet in another session's burst") }
    try sessions[id]!.hearAgain(packet, at: burst.positionMilliseconds)
    burstPacketCount += 1
    burst.packetsLeft -= 1
    burst.positionMilliseconds += SimulatedPacket.durationMilliseconds
    self.burst = burst.packetsLeft > 0 ? burst : nil
    if burst.packetsLeft == 0 { try sessions[id]!.comparePosition(burst.positionMilliseconds) }
  }

  private func receive(_ event: EngineEvent) throws(Violation) {
    if let requestID = event.requestID, requests.isAsked(requestID, by: self) {
      guard waiting.remove(requestID) != nil else { throw Violation("\(requestID) is answered twice") }
    }
    if case .hello(let hello) = event.body {
      guard !isGreeted else { throw Violation("a second hello") }
      isGreeted = true
      mayHearOfMore = hello.sessions.count == WireLimits.maximumHelloSessions
      for snapshot in hello.sessions {
        sessions[snapshot.sessionID] = try ModelSession(snapshot, requests)
      }
      return
    }
    guard isGreeted else { throw Violation("\(event.body.name) before hello") }
    if case .listed = event.body {
      guard mayHearOfMore else { throw Violation("listed though hello was not full, or twice") }
      mayHearOfMore = false
      return
    }
    guard let id = event.sessionID else { return }
    switch event.body {
    case .extracting(_, let tag):
      guard sessions[id] == nil else { throw Violation("\(id): extracting while another track plays") }
      sessions[id] = try ModelSession(id, tag: tag, requests)
    case .ended(let reason, let position):
      guard var session = sessions.removeValue(forKey: id) else { throw Violation("\(id): a second end") }
      try session.end(reason, position)
    // Of what stands by, who asked hears that it is open, and that it begins.
    case .ready where sessions[id] == nil && event.requestID != nil: break
    case .status(let snapshot):
      guard snapshot.state != .idle else {
        guard sessions[id] == nil else { throw Violation("\(id) is said to be idle, and plays") }
        return
      }
      if sessions[id] == nil, mayHearOfMore && event.requestID == nil || requests.isTakenOver(id) {
        sessions[id] = try ModelSession(snapshot, requests)
      }
      guard sessions[id] != nil else { throw Violation("\(id): the status of what has ended") }
      try sessions[id]!.compare(snapshot)
      statuses[id] = snapshot
    case .error(let report):
      lastError = report
      sessions[id]?.fail(report, isAnswer: event.requestID != nil)
    case .burst(let first, let count):
      guard event.requestID.map({ requests.isAsked($0, by: self) }) == true else {
        throw Violation("\(id): somebody else's burst")
      }
      if count > 0 { burst = (id, count, first.positionMilliseconds) }
    case .why:
      guard event.requestID.map({ requests.isAsked($0, by: self) }) == true else {
        throw Violation("\(id): an answer to somebody else")
      }
    default:
      guard sessions[id] != nil else { throw Violation("\(id): \(event.body.name), and no session") }
      try sessions[id]!.change(event)
    }
  }

  /// Every packet that is due by now has come.
  func checkPunctuality(now: UInt64) throws(Violation) {
    guard isUpToDate else { return }
    for session in sessions.values { try session.checkPunctuality(now: now) }
  }
}

extension EngineEvent.Body {
  /// The event's name with what matters of it.
  fileprivate var words: String {
    switch self {
    case .playing(let anchor), .resumed(let anchor), .rebased(let anchor):
      "\(name) \(anchor.positionMilliseconds) due \(anchor.dueNanoseconds / 1_000_000)"
    case .paused(let position), .buffering(let position): "\(name) \(position)"
    case .dropped(let count): "\(name) \(count)"
    case .stuck(let position, let waited): "\(name) \(position) for \(waited)"
    case .seeked(let position, let due):
      "\(name) \(position)" + (due.map { " due \($0 / 1_000_000)" } ?? "")
    case .ended(let reason, let position): "\(name) \(reason) \(position)"
    case .error(let report): "\(name) \(report.code.rawValue)"
    default: name
    }
  }
}
