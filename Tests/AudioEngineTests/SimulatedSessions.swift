import AudioEngineCore
import Synchronization
import WireProtocol

/// A packet whose bytes say which sound it is, so that a model of a router can tell what it hears.
struct SimulatedPacket: Equatable {
  enum Kind: UInt8 {
    case timeline
    /// Of a splice.
    case fadeOut, fadeIn
    /// Of a splice, where no packet was to be faded in.
    case silence
  }

  static let durationMilliseconds = WireLimits.packetDurationMilliseconds

  var kind = Kind.timeline
  var track: Int
  /// In tenths.
  var volume: Int
  var positionMilliseconds: Int

  init(track: Int, volume: Int, positionMilliseconds: Int) {
    self.track = track
    self.volume = volume
    self.positionMilliseconds = positionMilliseconds
  }

  init(_ bytes: some Collection<UInt8>) {
    let bytes = Array(bytes)
    kind = Kind(rawValue: bytes[0])!
    track = Int(bytes[1])
    volume = Int(bytes[2])
    positionMilliseconds = bytes[3...].reduce(0) { $0 << 8 | Int($1) }
  }

  var bytes: [UInt8] {
    [kind.rawValue, UInt8(track), UInt8(volume)]
      + (0..<3).map { UInt8(truncatingIfNeeded: positionMilliseconds >> (16 - 8 * $0)) }
  }

  /// What a splice gives, in packets of this kind.
  static func render(_ splice: Splice) -> [[UInt8]] {
    guard let incoming = splice.incoming else { return [faded(splice.outgoing!, 0, .fadeOut)] }
    return (0..<4).map { faded(incoming, $0, .fadeIn) }
  }

  private static func faded(_ side: Splice.Side, _ offset: Int, _ kind: Kind) -> [UInt8] {
    let index = side.spliceIndex + offset
    guard side.packets.indices.contains(index) else {
      var silence = SimulatedPacket(track: 0, volume: 0, positionMilliseconds: 0)
      silence.kind = .silence
      return silence.bytes
    }
    var packet = SimulatedPacket(side.packets[index])
    packet.kind = kind
    return packet.bytes
  }
}

/// Fills a timeline as a producer does, as far as it is told to.
final class SimulatedProducer {
  static let packetsBeforeReady = 5
  static let failure = ErrorReport(.sourceNotAudio, "the source broke off", stage: .decode)

  let timeline: Timeline
  private var writer: Timeline.Writer
  private let track: Int
  private let packetCount: Int
  private var producedCount = 0
  /// The packet it fails at.
  var failingIndex: Int?
  private(set) var isFinished = false

  /// - Parameter sourcePacketCount: of the whole source.
  init(_ timeline: Timeline, sourcePacketCount: Int) {
    guard case .file(let path) = timeline.key.source, let track = Int(path) else { preconditionFailure() }
    self.timeline = timeline
    self.track = track
    writer = Timeline.Writer(timeline)
    packetCount = sourcePacketCount - timeline.key.startMilliseconds / SimulatedPacket.durationMilliseconds
  }

  /// - Returns: whether sessions are to be told.
  func produce(_ count: Int) -> Bool {
    var hasChanged = false
    for _ in 0..<count where !isFinished {
      if timeline.isCancelled || producedCount == failingIndex {
        finish(timeline.isCancelled ? ErrorReport(.superseded, "nobody listens") : Self.failure)
        hasChanged = true
      } else if producedCount >= packetCount {
        finish(nil)
        hasChanged = true
      } else {
        append()
        let isReady = producedCount == Self.packetsBeforeReady || producedCount == packetCount
        guard isReady, timeline.phase == .opening else { continue }
        timeline.becomeReady(
          TrackDetails(title: nil, durationMilliseconds: nil, codec: "x", isPassthrough: false))
        hasChanged = true
      }
    }
    return hasChanged
  }

  private func append() {
    let position = timeline.position(ofPacket: producedCount)
    let volume = Int((timeline.key.volume * 10).rounded())
    SimulatedPacket(track: track, volume: volume, positionMilliseconds: position).bytes
      .withUnsafeBytes { writer.append($0) }
    producedCount += 1
  }

  private func finish(_ failure: ErrorReport?) {
    timeline.finish(failure: failure)
    isFinished = true
  }
}

/// What the director asks for, kept until the simulation gives it.
final class SimulatedEffects: SessionEffects {
  struct Acquisition {
    let id: SessionID
    let moveNumber: UInt64
    let key: TrackKey
  }

  struct Render {
    let id: SessionID
    let number: UInt64
    /// Those that the director has not been given.
    var packets: [[UInt8]]
    /// Whether it was given the first.
    var isBegun = false
  }

  struct Waiting {
    var acquisitions: [Acquisition] = []
    var splices: [Render] = []
    var splicesAtOnce = 4
    var maximumWaitingSplices = 128
    var leadNanoseconds: UInt64 = 4_000_000
  }

  let waiting = Mutex(Waiting())

  func acquireTimeline(for id: SessionID, moveNumber: UInt64, key: TrackKey, client: String?) {
    waiting.withLock { $0.acquisitions.append(Acquisition(id: id, moveNumber: moveNumber, key: key)) }
  }

  func render(_ splice: Splice, for id: SessionID, number: UInt64) {
    let packets = SimulatedPacket.render(splice)
    waiting.withLock { $0.splices.append(Render(id: id, number: number, packets: packets)) }
  }

  var splicesAtOnce: Int { waiting.withLock { $0.splicesAtOnce } }
  var spliceLeadNanoseconds: UInt64 { waiting.withLock { $0.leadNanoseconds } }
  var maximumWaitingSplices: Int { waiting.withLock { $0.maximumWaitingSplices } }

  func post(_ message: SessionMessage) {}
  func report(_ error: ErrorReport, of id: SessionID) {}
  func report(_ change: SessionChange, of id: SessionID) {}
}

/// The director with all that is around it: a clock, a store whose timelines the test fills, and routers that check
/// what they hear.
final class SimulatedSessions {
  /// The productions that the store has begun.
  private final class Productions: Sendable {
    let begun = Mutex<[Timeline]>([])
    let isFull = Mutex(false)
  }

  static let maximumSessions = 200
  static let idleTimeoutNanoseconds: UInt64 = 30_000_000_000

  let effects = SimulatedEffects()
  let director: SessionDirector
  let store: TimelineStore
  private(set) var now: UInt64 = 1_000_000_000_000
  private(set) var producers: [SimulatedProducer] = []
  private(set) var routers: [ModelRouter] = []
  /// What every model knows of what was asked for.
  let requests = SimulatedRequests()
  /// Timelines whose change the director has not been told of.
  var changed: [Timeline] = []
  private let productions = Productions()
  private var rebasedNanoseconds: UInt64 = 0

  init(maximumSessions: Int = SimulatedSessions.maximumSessions) {
    let productions = productions
    store = TimelineStore(
      cacheByteLimit: 1 << 30, freshness: SourceFreshness(mediaRoot: nil, webCacheSeconds: 600)
    ) { (timeline, _) throws(ErrorReport) in
      guard !productions.isFull.withLock({ $0 }) else { throw ErrorReport(.workersExhausted, "full") }
      productions.begun.withLock { $0.append(timeline) }
    }
    director = SessionDirector(
      limits: Hello.Limits(
        maximumWorkers: 60, maximumSessions: maximumSessions, readAheadMilliseconds: 15_000),
      startedAtMilliseconds: 0, idleTimeoutNanoseconds: Self.idleTimeoutNanoseconds, now: now,
      effects: effects)
  }

  /// Whether there is no worker for a new production.
  func setFull(_ isFull: Bool) { productions.isFull.withLock { $0 = isFull } }

  // MARK: Commands

  /// Does what `CommandHandler` does: finds the timeline of a play, and gives both to the director.
  func send(_ action: EngineCommand.SessionAction, to id: SessionID, as request: PendingRequest) {
    switch action {
    case .play(let play): acquire(id, play, request) { .play($0) }
    case .prepare(let play): acquire(id, play, request) { .prepare($0, request) }
    case .standBy(let play, let position):
      requests.setTakenOver(id)

      acquire(id, play, request, standbyMilliseconds: position) { .play($0) }
    case .handOver:
      requests.setHandedOver(id)
      director.handle(.command(id, action, request), now: now)
    default: director.handle(.command(id, action, request), now: now)
    }
  }

  func burst(_ milliseconds: Int, of id: SessionID, as request: PendingRequest) {
    director.handle(.burst(id, milliseconds: milliseconds, request), now: now)
  }

  private func acquire(
    _ id: SessionID, _ play: PlayRequest, _ request: PendingRequest, standbyMilliseconds: Int? = nil,
    _ message: (NewPlay) -> SessionMessage
  ) {
    do throws(ErrorReport) {
      let source = try MediaSource(play.url)
      let start = standbyMilliseconds ?? play.startMilliseconds
      let key = TrackKey(source: source, startMilliseconds: start, volume: play.volume)
      let new = NewPlay(
        id: id, request: play, source: source, lease: try acquire(key), pendingRequest: request,
        standbyMilliseconds: standbyMilliseconds)
      director.handle(message(new), now: now)
    } catch {
      director.handle(.answer(EngineEvent(.error(error), sessionID: id), request), now: now)
    }
  }

  private func acquire(_ key: TrackKey, isContinuation: Bool = false) throws(ErrorReport) -> TimelineLease {
    store.finishReleases()
    defer {
      let begun = productions.begun.withLock { begun in
        defer { begun = [] }
        return begun
      }
      for timeline in begun {
        guard case .file(let path) = timeline.key.source, let track = Int(path) else { continue }
        producers.append(SimulatedProducer(timeline, sourcePacketCount: requests.packetCount(ofTrack: track)))
      }
    }
    return try store.acquire(key, isContinuation: isContinuation)
  }

  // MARK: What happens elsewhere

  func produce(_ count: Int, by producer: SimulatedProducer) {
    if producer.produce(count) { changed.append(producer.timeline) }
    if producer.isFinished { producers.removeAll { $0 === producer } }
  }

  func deliverChange(at index: Int) { director.handle(.timelineChanged(changed.remove(at: index)), now: now) }

  /// Gives the director the oldest timeline that it has asked for.
  func deliverAcquisition() {
    let next = effects.waiting.withLock { $0.acquisitions.removeFirst() }
    let result = Result { () throws(ErrorReport) in try acquire(next.key, isContinuation: true) }
    director.handle(.timelineAcquired(next.id, moveNumber: next.moveNumber, result), now: now)
  }

  /// Gives the director what comes next of the oldest splice that it has asked for: the first packet, none where
  /// rendering fails, or those behind it.
  ///
  /// - Parameter beginsFirst: whether what is begun is finished only when there is none to begin with.
  func deliverSplice(isFailing: Bool = false, beginsFirst: Bool = false) {
    var next = effects.waiting.withLock { waiting in
      waiting.splices.remove(at: beginsFirst ? waiting.splices.firstIndex { !$0.isBegun } ?? 0 : 0)
    }
    guard !next.isBegun else {
      return director.handle(.spliceContinued(next.id, number: next.number, next.packets), now: now)
    }
    next.isBegun = true
    let first = isFailing ? [] : [next.packets.removeFirst()]
    // The others come later, and others' splices between.
    if !isFailing, !next.packets.isEmpty { effects.waiting.withLock { [next] in $0.splices.append(next) } }
    director.handle(.spliced(next.id, number: next.number, first), now: now)
  }

  var acquisitionCount: Int { effects.waiting.withLock { $0.acquisitions.count } }
  var spliceCount: Int { effects.waiting.withLock { $0.splices.count } }

  func deliverAll() {
    while !changed.isEmpty || acquisitionCount + spliceCount > 0 {
      while !changed.isEmpty { deliverChange(at: 0) }
      while acquisitionCount > 0 { deliverAcquisition() }
      while spliceCount > 0 { deliverSplice() }
    }
  }

  // MARK: Time and routers

  func wait(nanoseconds: UInt64) { now += nanoseconds }

  /// One round of the pacer.
  func step() throws(Violation) {
    let rebaseCount = director.counts.rebases
    director.step(now: now)
    try flush()
    // Routers hear of a restart of the schedule with each session's next packet.
    if director.counts.rebases > rebaseCount { rebasedNanoseconds = now }
    if now >= rebasedNanoseconds + WireLimits.packetDurationNanoseconds {
      for router in routers { try router.checkPunctuality(now: now) }
    }
    store.finishReleases()
  }

  /// Lets time pass, with a step whenever the director wants one, and what it asks for given at once.
  func run(milliseconds: Int) throws(Violation) {
    let end = now + UInt64(milliseconds) * 1_000_000
    deliverAll()
    try step()
    while let deadline = director.deadlineNanoseconds(now: now), deadline <= end {
      now = max(now, deadline)
      try step()
      deliverAll()
    }
    now = end
    try step()
  }

  func connect(isLogging: Bool = false) throws(Violation) -> ModelRouter {
    try flush()
    let router = ModelRouter(requests: requests, isLogging: isLogging)
    routers.append(router)
    director.connect(router.id, now: now)
    return router
  }

  func disconnect(_ router: ModelRouter) {
    routers.removeAll { $0 === router }
    director.disconnect(router.id)
    router.forgetRequests()
  }

  private func flush() throws(Violation) {
    for router in routers { try router.receive(director.output, now: now) }
    director.output.removeAll()
  }
}
