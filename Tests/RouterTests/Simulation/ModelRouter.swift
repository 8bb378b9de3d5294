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

  enum Waiter {
    case own(Playback.Write?)
    case command(Playback.Write, RequesterID)

    var isOwn: Bool {
      if case .command = self { false } else { true }
    }
  }

  struct Cargo {
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

  enum Pending {
    case requesterID(RequesterID)
    case prepare(RequesterID?, tag: String?)
  }

  enum DeferredStep {
    case own(Playback.Step)
    case client(RequesterID)
  }

  let id: SessionID
  let fault: Fault
  var playback: Playback
  var countedMilliseconds = 0
  var isConnected = false
  var disk = ModelDisk()
  /// What the engine has not read yet.
  var outbox: [(action: EngineCommand.SessionAction, requestID: String)] = []
  var requests: [RequesterID: Request] = [:]
  var violations: [Violation] = []
  var retryTimerCount = 0
  var acknowledgedAddresses: Set<String> = []
  var removedAddresses: Set<String> = []
  /// Addresses that a client has ended.
  var dismissedAddresses: Set<String> = []
  /// Operators' plays that went on while a Router died. They have no name: to the next, which did not see them begin,
  /// one that the queue has left is not to be told from a new one.
  var namelessAddresses: Set<String> = []
  var everLooped = false
  var crashes = CrashTracker()
  var tags = PlayTags(prefix: "t0")
  var startCount = 0
  var requestCount = 0
  var pending: [String: Pending] = [:]
  var held: (play: StartingPlay, requesterID: RequesterID?)?
  var engineStartedAt: Int?
  var cargo = Cargo()
  var underway: Cargo?
  var isDiskBroken = false
  var deferred: [DeferredStep]?
  /// Where each play was when it was heard last.
  var heardMilliseconds: [String: Int] = [:]

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

  mutating func run(_ step: (inout Playback, inout Playback.Context) throws -> Void) rethrows {
    var context = Playback.Context(
      positionMilliseconds: countedMilliseconds, nowMilliseconds: 0, isEngineConnected: isConnected,
      crashes: crashes, tags: tags)
    try step(&playback, &context)
    tags = context.tags
    for action in playback.takeActions() { perform(action) }
  }

  mutating func perform(_ action: Playback.Action) {
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

  mutating func answer(_ requesterID: RequesterID?, isRefusal: Bool = false) {
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

  mutating func perform(_ requesterID: RequesterID) {
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
  mutating func note(_ command: Command, _ requesterID: RequesterID) {
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
