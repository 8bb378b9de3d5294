import RouterCore
import WireProtocol

/// What the data plane and `StateWriter` do around one session's `Playback`: performs its actions, in order, and tells
/// it what became of them. Deliveries, the disk and time are the simulation's.
struct ModelRouter {
  /// What is deliberately wrong, so that the invariants are seen to notice.
  enum Fault {
    case none, answersTwice, answersNobody, forgetsStop, dropsReplacedEnd, repeatsEnd, losesRow, doublesEntry,
      skipsEntry, restartsAtZero, loadsNothing
  }

  /// A command of a client's, until it is answered.
  struct Request {
    var command: Command
    var answerCount = 0
    /// Addresses that it adds to the queue, takes out of it, or ends.
    var added: [String] = []
    var removed: Set<String> = []

    var isUnansweredPlay: Bool { if case .play = command { answerCount == 0 } else { false } }
  }

  enum Command {
    case queue(QueueCommand)
    case play(String)
    case prepare(String)
    case stop
    case volume(Double)
    case engine(EngineCommand.SessionAction)
  }

  private enum Waiter {
    case own(Playback.Write?)
    case command(Playback.Write, RequesterID)

    var isOwn: Bool {
      if case .command = self { false } else { true }
    }
  }

  private struct Cargo {
    var transaction = ModelDisk.Transaction()
    var holdsSession = false
    var isOwn = false
    var isAnew = false
    var undo: Playback.Undo?
    var waiters: [Waiter] = []

    var isEmpty: Bool {
      !holdsSession && waiters.isEmpty && transaction.positionMilliseconds == nil
        && transaction.engineStartedAt == nil
    }
  }

  private enum Pending {
    case requesterID(RequesterID)
    case prepare(RequesterID?, tag: String?)
  }

  private enum DeferredStep {
    case own(Playback.Step)
    case client(RequesterID)
  }

  let id: SessionID
  let fault: Fault
  private(set) var playback: Playback
  private(set) var countedMilliseconds = 0
  private(set) var isConnected = false
  private(set) var disk = ModelDisk()
  /// What the engine has not read yet.
  var outbox: [(action: EngineCommand.SessionAction, requestID: String)] = []
  private(set) var requests: [RequesterID: Request] = [:]
  private(set) var violations: [Violation] = []
  private(set) var retryTimerCount = 0
  private(set) var acknowledgedAddresses: Set<String> = []
  private(set) var removedAddresses: Set<String> = []
  /// Addresses that a client has ended.
  private(set) var dismissedAddresses: Set<String> = []
  /// Operators' plays that went on while a Router died. They have no name: to the next, which did not see them begin,
  /// one that the queue has left is not to be told from a new one.
  private(set) var namelessAddresses: Set<String> = []
  private(set) var everLooped = false
  private var crashes = CrashTracker()
  private var tags = PlayTags(prefix: "t0")
  private var startCount = 0
  private var requestCount = 0
  private var pending: [String: Pending] = [:]
  private var held: (play: StartingPlay, requesterID: RequesterID?)?
  private var engineStartedAt: Int?
  private var cargo = Cargo()
  private var underway: Cargo?
  private var isDiskBroken = false
  private var deferred: [DeferredStep]?
  /// Where each play was when it was heard last.
  private var heardMilliseconds: [String: Int] = [:]

  init(id: SessionID, fault: Fault) {
    self.id = id
    self.fault = fault
    playback = Playback(id: id)
  }

  var isWriting: Bool { underway != nil }
  var hasWritten: Bool { underway == nil && cargo.isEmpty }
  var isReading: Bool { deferred != nil }
  var isHolding: Bool { held != nil }

  // MARK: Steps

  private mutating func run(_ step: (inout Playback, inout Playback.Context) throws -> Void) rethrows {
    var context = Playback.Context(
      positionMilliseconds: countedMilliseconds, nowMilliseconds: 0, isEngineConnected: isConnected,
      crashes: crashes, tags: tags)
    try step(&playback, &context)
    tags = context.tags
    for action in playback.takeActions() { perform(action) }
  }

  private mutating func perform(_ action: Playback.Action) {
    switch action {
    case .send(let command, let requesterID): send(command, for: requesterID)
    case .write(let write, let requesterID):
      collect()
      if let requesterID {
        cargo.waiters.append(.command(write, requesterID))
      } else {
        cargo.isOwn = true
        cargo.waiters.append(.own(write))
      }
      writeNext()
    case .save, .saveThenAnnounceQueue: save()
    case .loadQueue(let step): load(.own(step))
    case .startRetryTimer: retryTimerCount += 1
    case .answer(let requesterID, _): answer(requesterID)
    case .answerQueue(let requesterID, _, _): answer(requesterID)
    case .refuse(let requesterID, _), .refuseUnwritten(let requesterID, _):
      answer(requesterID, isRefusal: true)
    case .report(let event):
      report(event)
      if fault == .repeatsEnd { report(event) }
    case .hold(let play, let requesterID): held = (play, requesterID)
    case .releaseHeld:
      answer(held?.requesterID, isRefusal: true)
      held = nil
    case .note(let happening):
      cargo.undo?.note(happening)
      underway?.undo?.note(happening)
    case .willAnswer, .broadcast, .announceQueue, .playBegan, .playEnded, .followed, .logResumption: break
    }
  }

  private mutating func answer(_ requesterID: RequesterID?, isRefusal: Bool = false) {
    guard let requesterID, let request = requests[requesterID] else { return }
    if fault == .answersNobody, requesterID.number % 7 == 0 { return }
    requests[requesterID]!.answerCount += fault == .answersTwice && requesterID.number % 7 == 0 ? 2 : 1
    if requests[requesterID]!.answerCount > 1 { violations.append(.answered(requesterID.number, times: 2)) }
    guard !isRefusal else { return }
    acknowledgedAddresses.formUnion(request.added)
    removedAddresses.formUnion(request.removed)
  }

  /// What may be missing though it was acknowledged, since a client is about to take it out.
  var leavingAddresses: Set<String> {
    requests.values.reduce(into: []) { if $1.answerCount == 0 { $0.formUnion($1.removed) } }
  }

  // MARK: Clients

  mutating func take(_ command: Command) {
    requestCount += 1
    let requesterID = RequesterID(number: requestCount)
    requests[requesterID] = Request(command: command)
    perform(requesterID)
  }

  private mutating func perform(_ requesterID: RequesterID) {
    let command = requests[requesterID]!.command
    if !playback.isQueueLoaded { return load(.client(requesterID)) }
    note(command, requesterID)
    switch command {
    case .queue(let command):
      keepUndo()
      do {
        try run { try $0.change(command, for: requesterID, &$1) }
      } catch {
        _ = playback.takeActions()
        answer(requesterID, isRefusal: true)
      }
    case .play(let url):
      keepUndo()
      run { $0.play(QueuedTrack(url: url), PlayRequest(url: url), for: requesterID, &$1) }
    case .prepare(let url):
      keepUndo()
      run { $0.prepare(QueuedTrack(url: url), PlayRequest(url: url), for: requesterID, &$1) }
    case .stop:
      if playback.hasOnlyDeferredPlay || playback.isWritingPlay { keepUndo() }
      run { $0.stop(for: requesterID, $1) }
    case .volume(let level):
      if playback.canKeepVolume || playback.isWritingPlay { keepUndo() }
      run { $0.setVolume(level, for: requesterID, $1) }
    case .engine(let action):
      if playback.isWritingPlay { keepUndo() }
      run { playback, _ in playback.send(action, for: requesterID) }
    }
  }

  /// What the command is going to do to the queue, for the invariants.
  private mutating func note(_ command: Command, _ requesterID: RequesterID) {
    let queue = playback.plan.queue
    switch command {
    case .queue(.add(let tracks, _)):
      requests[requesterID]!.added = tracks.map(\.url)
      // What plays is being stopped.
      if let current = queue.current, playback.isIdle { dismissedAddresses.insert(current.track.url) }
    case .queue(.remove(let id)):
      requests[requesterID]!.removed = Set(
        queue.waiting.lazy.filter { $0.entry.id == id }.map(\.entry.track.url))
    case .queue(.clear): requests[requesterID]!.removed = Set(queue.waiting.map(\.entry.track.url))
    case .queue(.loop(let mode)): if mode != .off { everLooped = true }
    // What plays, what is on its way, and what has begun though the queue could not follow yet.
    case .queue(.skip), .queue(.skipTo), .queue(.previous), .play, .stop:
      dismissedAddresses.formUnion(
        [queue.current?.track.url, playback.plan.starting?.entry?.track.url, playback.reported.url]
          .compactMap(\.self))
    default: break
    }
  }

  // MARK: The engine

  private mutating func send(_ command: EngineCommand.SessionAction, for requesterID: RequesterID?) {
    guard isConnected else {
      let report = ErrorReport(.engineUnavailable, "no engine", stage: .command)
      return run { $0.notSent(command, for: requesterID, report, &$1) }
    }
    requestCount += 1
    let requestID = "\(startCount)-\(requestCount)"
    var sent = command
    switch command {
    case .prepare(let request): pending[requestID] = .prepare(requesterID, tag: request.tag)
    case .play(var request):
      if fault == .restartsAtZero { request.startMilliseconds = 0 }
      checkPlace(of: request)
      sent = .play(request)
      if let requesterID { pending[requestID] = .requesterID(requesterID) }
    default: if let requesterID { pending[requestID] = .requesterID(requesterID) }
    }
    if fault != .forgetsStop || command != .stop {
      outbox.append((sent, requestID))
    } else if let requesterID {
      answer(requesterID)
      pending[requestID] = nil
    }
    run { playback, _ in playback.sent(command, requestID: requestID) }
  }

  /// What was heard before resumes where it was.
  private mutating func checkPlace(of request: PlayRequest) {
    guard let tag = request.tag, let heard = heardMilliseconds[tag], heard != request.startMilliseconds else {
      return
    }
    violations.append(.jumped(from: heard, to: request.startMilliseconds))
  }

  private mutating func noteHeard() {
    guard let tag = playback.reported.tag, playback.state != .idle, !playback.isLost else { return }
    heardMilliseconds[tag] =
      playback.state == .streaming ? countedMilliseconds : playback.reported.positionMilliseconds ?? 0
  }

  mutating func receive(_ message: ModelEngine.Message) {
    switch message {
    case .event(let event) where fault == .dropsReplacedEnd && event.isReplaced: break
    case .packets(let count): countedMilliseconds += count * WireLimits.packetDurationMilliseconds
    case .event(let event): report(event)
    }
    noteHeard()
  }

  /// As `DataPlane.engineReported`.
  private mutating func report(_ event: EngineEvent) {
    var answered: Pending?
    if case .extracting = event.body {
    } else {
      answered = event.requestID.flatMap { pending.removeValue(forKey: $0) }
    }
    checkOrder(event.body)
    noteReplaced(by: event.body)
    switch event.body {
    case .playing(let anchor), .resumed(let anchor), .rebased(let anchor):
      countedMilliseconds = anchor.positionMilliseconds
    case .seeked(let position, _): countedMilliseconds = position
    default: break
    }
    run { playback, _ in playback.apply(event) }
    switch answered {
    case .requesterID(let requesterID): answer(requesterID, isRefusal: event.isError)
    case .prepare(let requesterID, let tag): answerPrepare(requesterID, tag: tag, isError: event.isError)
    case nil: break
    }
    run { $0.follow(event, &$1) }
    save()
    if case .ready = event.body { run { playback, _ in playback.sendWantedVolume() } }
  }

  /// What plays is about to make room for a client's own play, or for an operator's.
  private mutating func noteReplaced(by body: EngineEvent.Body?) {
    let isOperators = if case .extracting(_, nil) = body { true } else { false }
    guard isOperators || playback.plan.starting?.entry != nil || held?.play.entry != nil else { return }
    if let current = playback.plan.queue.current { dismissedAddresses.insert(current.track.url) }
  }

  private mutating func answerPrepare(_ requesterID: RequesterID?, tag: String?, isError: Bool) {
    answer(requesterID, isRefusal: isError)
    if isError, isConnected { run { $0.prepareAnswered(tag: tag, isError: true, &$1) } }
  }

  /// Nothing follows an end, and nothing begins beside what plays.
  private mutating func checkOrder(_ body: EngineEvent.Body) {
    switch body {
    case .extracting:
      if playback.state != .idle, !playback.isLost { violations.append(.begunBesideAnother) }
    case .ready, .playing, .paused, .resumed, .seeked, .ended:
      if playback.state == .idle { violations.append(.followedEnd("\(body)")) }
    default: break
    }
  }

  mutating func connect(_ hello: Hello) {
    isConnected = true
    let isSame = engineStartedAt == hello.startedAtMilliseconds
    engineStartedAt = hello.startedAtMilliseconds
    // As `StateWriter.saveEngine`: written with what follows, or by itself.
    cargo.transaction.engineStartedAt = engineStartedAt
    defer { writeNext() }
    let wasBusy = !playback.isAtRest
    if let snapshot = hello.sessions.first {
      countedMilliseconds = snapshot.positionMilliseconds ?? 0
      run { $0.reconcile(with: snapshot, &$1) }
      save()
      run { $0.prepareNextIfNeeded(&$1) }
    } else if wasBusy {
      run { $0.engineDoesNotPlay(isSameEngine: isSame, &$1) }
    }
    noteHeard()
  }

  mutating func disconnect() {
    isConnected = false
    outbox = []
    // A client's own that is on its way takes the place of what plays, even one that was overtaken by what is undone.
    if requests.values.contains(where: \.isUnansweredPlay) {
      dismissedAddresses.formUnion([playback.reported.url].compactMap(\.self))
    }
    noteReplaced(by: nil)
    if let released = held {
      held = nil
      playback.isHeld = false
      answer(released.requesterID, isRefusal: true)
      if released.play.entry != nil { run { playback, _ in playback.deferHeld(released.play) } }
    }
    let wasAtRest = playback.isAtRest
    run { $0.loseEngine($1) }
    if !wasAtRest { save() }
    let lost = pending.values
    pending = [:]
    for one in lost {
      switch one {
      case .requesterID(let requesterID): answer(requesterID, isRefusal: true)
      case .prepare(let requesterID, let tag): answerPrepare(requesterID, tag: tag, isError: true)
      }
    }
  }

  // MARK: Time

  mutating func fireRetryTimers() {
    let count = retryTimerCount
    retryTimerCount = 0
    for _ in 0..<count { run { $0.retry(&$1) } }
  }

  mutating func housekeep() {
    if fault == .skipsEntry, playback.state == .paused {
      run { $0.resume(.advance(after: .finished, from: $0.plan.queue.current?.id), &$1) }
    }
    run { $0.prepareNextIfNeeded(&$1) }
  }

  /// Another address on which the engine may have died has been tried.
  mutating func releaseHeld() {
    guard let released = held else { return }
    held = nil
    playback.isHeld = false
    guard released.play.entry != nil || playback.plan.deferredPlay?.tag == released.play.request.tag else {
      return answer(released.requesterID, isRefusal: true)
    }
    if released.requesterID != nil { keepUndo() }
    run { playback, _ in playback.begin(released.play, for: released.requesterID) }
  }

  // MARK: The disk, as `StateWriter`

  private mutating func keepUndo() {
    if cargo.undo == nil { cargo.undo = Playback.Undo(playback) }
  }

  private mutating func collect() {
    cargo.holdsSession = true
    let changes = playback.plan.queue.takeChanges()
    if !cargo.isAnew { cargo.transaction.changes += changes }
  }

  private mutating func save() {
    collect()
    cargo.isOwn = true
    writeNext()
  }

  private mutating func writeNext(isRetry: Bool = false) {
    guard underway == nil, !isDiskBroken || isRetry, !cargo.isEmpty else { return }
    if cargo.isAnew {
      cargo.transaction.isCleared = true
      cargo.transaction.changes = playback.plan.queue.allRows
    }
    if cargo.holdsSession {
      cargo.transaction.record = playback.record(countedMilliseconds: countedMilliseconds)
    }
    underway = cargo
    cargo = Cargo()
  }

  mutating func checkpoint() {
    if playback.state == .streaming { cargo.transaction.positionMilliseconds = countedMilliseconds }
    writeNext(isRetry: true)
  }

  /// - Parameter clearance: of the plays and prepares that are written.
  mutating func finishWrite(succeeds: Bool, clearance: Playback.Clearance) {
    guard let carried = underway else { return }
    underway = nil
    isDiskBroken = !succeeds
    if succeeds {
      var transaction = carried.transaction
      if fault == .losesRow, !transaction.isCleared {
        transaction.changes = Array(transaction.changes.dropLast())
      }
      disk.write(transaction)
      for waiter in carried.waiters { tell(waiter, clearance, nil) }
    } else {
      putBack(carried)
    }
    if !isDiskBroken { writeNext() }
  }

  private mutating func tell(_ waiter: Waiter, _ clearance: Playback.Clearance, _ failure: ErrorReport?) {
    switch waiter {
    case .own(let write):
      if let write { run { $0.written(write, for: nil, clearance: clearance, &$1) } }
    case .command(let write, let requesterID):
      run { $0.written(write, for: requesterID, clearance: clearance, failure: failure, &$1) }
    }
  }

  private mutating func putBack(_ carried: Cargo) {
    let later = cargo
    let undo = carried.undo ?? later.undo
    cargo = Cargo()
    cargo.waiters = later.waiters.filter(\.isOwn)
    cargo.isOwn = later.isOwn || carried.isOwn
    cargo.isAnew = later.isAnew || carried.isAnew
    cargo.holdsSession = later.holdsSession || carried.holdsSession
    cargo.transaction.changes =
      (carried.isAnew ? [] : carried.transaction.changes) + later.transaction.changes
    cargo.transaction.engineStartedAt =
      later.transaction.engineStartedAt ?? carried.transaction.engineStartedAt
    if let undo {
      let isOwn = cargo.isOwn || !undo.since.isEmpty || cargo.isAnew
      playback.undo(to: undo)
      cargo.transaction.changes = []
      cargo.holdsSession = isOwn
      cargo.isAnew = isOwn && playback.isQueueLoaded
      for happening in undo.since { run { $0.repeat(happening, &$1) } }
      run { $0.resumeAfterUndo(&$1) }
    }
    let failure = ErrorReport(.storageFailed, "the disk is full", stage: .command)
    for waiter in carried.waiters + later.waiters.filter({ !$0.isOwn }) { tell(waiter, .send, failure) }
  }

  // MARK: The queue on disk

  private mutating func load(_ step: DeferredStep) {
    if deferred != nil { return deferred!.append(step) }
    deferred = [step]
  }

  mutating func finishRead() {
    guard let steps = deferred else { return }
    var queue = disk.queue(of: playback.record(countedMilliseconds: countedMilliseconds))
    if fault == .doublesEntry, let entry = queue.waiting.first {
      queue = TrackQueue(
        current: queue.current, waiting: [entry] + queue.waiting, history: Array(queue.history),
        lastPlayedNumber: queue.lastPlayedNumber, loop: queue.loop, bitrateKilobits: nil, lastID: queue.lastID
      )
    }
    playback.load(queue)
    deferred = nil
    for step in steps {
      switch step {
      case .own(let step): if fault != .loadsNothing { run { $0.resume(step, &$1) } }
      case .client(let requesterID): perform(requesterID)
      }
    }
  }

  mutating func unloadIfIdle() {
    guard playback.isAtRest, !playback.isHeld, deferred == nil, playback.isQueueLoaded,
      !cargo.holdsSession, cargo.undo == nil, underway == nil, !playback.plan.queue.hasChangedRows
    else { return }
    playback.unload()
  }

  /// The Router dies, and another begins with what is on disk.
  mutating func restart(during play: ModelEngine.Play?) {
    let heard = heardMilliseconds
    var next = ModelRouter(id: id, fault: fault)
    next.disk = disk
    next.acknowledgedAddresses = acknowledgedAddresses
    // A change that was under way may be on disk or not.
    next.removedAddresses = removedAddresses.union(leavingAddresses)
    next.dismissedAddresses = dismissedAddresses
    next.namelessAddresses = namelessAddresses
    if let play, play.request.tag == nil { next.namelessAddresses.insert(play.request.url) }
    next.everLooped = everLooped
    next.violations = violations
    next.startCount = startCount + 1
    next.requestCount = requestCount
    next.tags = PlayTags(prefix: "t\(startCount + 1)")
    next.engineStartedAt = disk.engineStartedAt
    if let record = disk.record {
      next.playback.restore(record)
      next.countedMilliseconds = record.positionMilliseconds
    }
    next.heardMilliseconds = heard
    // A client's own that had not begun takes the place of what played.
    if let record = disk.record, !record.hasBegun, let tag = record.playing?.tag,
      let current = record.current,
      PlayTags.entryID(tag) != current.id
    {
      next.dismissedAddresses.insert(current.track.url)
    }
    // What was heard since the last checkpoint is lost, and no more.
    if let playing = disk.record?.playing, let tag = playing.tag {
      next.heardMilliseconds[tag] =
        disk.record!.hasBegun ? disk.record!.positionMilliseconds : playing.startMilliseconds
    }
    self = next
  }
}

extension EngineEvent {
  fileprivate var isError: Bool {
    if case .error = body { true } else { false }
  }

  fileprivate var isReplaced: Bool {
    if case .ended(.replaced, _) = body { true } else { false }
  }
}
