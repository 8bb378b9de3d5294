import WireProtocol

/// What clients ask for. A change is answered, and a play sent, once it is on disk.
extension Playback {
  /// A client's own play becomes the queue's current entry once it plays.
  package mutating func play(
    _ track: QueuedTrack, _ request: PlayRequest, for requesterID: RequesterID?, _ context: inout Context
  ) {
    let (entry, request) = tagged(track, request, &context)
    begin(StartingPlay(request: request, entry: entry), for: requesterID)
  }

  /// A client's own goes before what the queue has next.
  package mutating func prepare(
    _ track: QueuedTrack, _ request: PlayRequest, for requesterID: RequesterID?, _ context: inout Context
  ) {
    let (entry, request) = tagged(track, request, &context)
    prepare(PreparedPlay(entry: entry, request: request, isClients: true), for: requesterID)
  }

  private mutating func tagged(
    _ track: QueuedTrack, _ request: PlayRequest, _ context: inout Context
  ) -> (QueueEntry, PlayRequest) {
    let entry = plan.queue.newEntry(track)
    var request = request
    request.tag = context.tags.next(for: entry)
    return (entry, request)
  }

  /// Stops what plays or is on its way.
  package mutating func stop(for requesterID: RequesterID?, _ context: Context) {
    guard hasOnlyDeferredPlay else {
      send(.stop, for: requesterID)
      return releaseHeld()
    }
    plan.deferredPlay = nil
    releaseHeld()
    let ended = lostEnd(.stopped, context)
    let (before, wasLost) = (reported, isLost)
    take(ended.body)
    _ = plan.queue.ended(.stopped)
    actions.append(.willAnswer(requesterID, .event(ended)))
    actions.append(.write(.stopped(ended, before: before, wasLost: wasLost), for: requesterID))
  }

  /// A level for what plays is the engine's to change; one for what comes next is kept here.
  package mutating func setVolume(_ level: Double, for requesterID: RequesterID?, _ context: Context) {
    guard canKeepVolume else { return send(.volume(level), for: requesterID) }
    if state == .extracting || plan.starting != nil { plan.wantedVolume = level }
    plan.volume = level
    let status = EngineEvent(
      .status(snapshot(countedMilliseconds: context.positionMilliseconds)), sessionID: id)
    actions.append(.willAnswer(requesterID, .event(status)))
    actions.append(.write(.volume(status), for: requesterID))
  }

  /// What was to be opened is open: the level that was asked for meanwhile is asked of the engine.
  package mutating func sendWantedVolume() {
    guard let level = plan.wantedVolume else { return }
    plan.wantedVolume = nil
    actions.append(.send(.volume(level), for: nil))
  }

  /// Sends a command behind a play that waits to be written.
  package mutating func send(_ action: EngineCommand.SessionAction, for requesterID: RequesterID?) {
    accept(action)
    guard isWritingPlay else { return actions.append(.send(action, for: requesterID)) }
    actions.append(.write(.command(action), for: requesterID))
  }

  /// Changes the queue.
  ///
  /// - Throws: what is wrong, before anything is changed.
  package mutating func change(
    _ command: QueueCommand, for requesterID: RequesterID?, _ context: inout Context
  ) throws(RequestError) {
    let before = plan.queue.view()
    let (added, action) = try plan.queue.apply(command, isSessionIdle: isIdle || playsScore)
    var answer = plan.queue.view()
    // A change may also be behind the page that is shown.
    let hasChanged = answer != before || plan.queue.hasChangedRows
    answer.added = added
    // Before anything else of it is written: where that fails, all of the change is undone.
    actions.append(.willAnswer(requesterID, .queue(answer)))
    actions.append(
      .write(.queue(answer: answer, hasChanged: hasChanged, stops: action == .stop), for: requesterID))
    switch action {
    case .play(let entry): begin(entry, &context)
    case .stop: giveUpOwnPlay()
    case nil: break
    }
    prepareNextIfNeeded(&context)
  }

  // MARK: Plays

  mutating func begin(_ entry: QueueEntry, _ context: inout Context) {
    begin(StartingPlay(request: request(for: entry, &context), entry: nil), for: nil)
  }

  /// Sends a play once it is on disk: a Router that dies in between asks for it again, and one that finds
  /// another track playing knows whether that is older or newer.
  package mutating func begin(_ play: StartingPlay, for requesterID: RequesterID?) {
    releaseHeld()
    var play = play
    if play.entry == nil {
      forgetPrepared()
    } else {
      play.deferredBefore = plan.deferredPlay ?? plan.starting?.ofQueue
    }
    plan.deferredPlay = nil
    // Whatever is to stop, this comes after it.
    plan.isStopping = false
    plan.starting = play
    actions.append(
      .write(.play(play.request, heldAtMilliseconds: play.heldAtMilliseconds), for: requesterID))
  }

  /// What the queue has left is not to begin any more.
  private mutating func giveUpOwnPlay() {
    plan.deferredPlay = nil
    if plan.starting?.entry == nil { plan.starting = nil }
  }

  func request(for entry: QueueEntry, _ context: inout Context) -> PlayRequest {
    PlayRequest(
      url: entry.track.url, volume: plan.volume, bitrateKilobits: plan.queue.bitrateKilobits,
      tag: context.tags.next(for: entry))
  }

  /// The Router's own stop.
  mutating func stop(_ context: Context) {
    plan.deferredPlay = nil
    releaseHeld()
    // Not yet asked for again, so that this engine does not know of it.
    if isLost, plan.starting == nil { return endWithdrawn(context) }
    plan.isStopping = true
    actions.append(.send(.stop, for: nil))
  }

  /// An engine that comes back with what plays is told then that it is not to be heard.
  private mutating func endWithdrawn(_ context: Context) {
    withdraw(reported.tag ?? reported.url)
    actions.append(.report(lostEnd(.stopped, context)))
  }

  mutating func withdraw(_ name: String?) {
    if let name { plan.withdrawn = plan.withdrawn.suffix(3) + [name] }
  }

  mutating func releaseHeld() {
    isHeld = false
    actions.append(.releaseHeld)
  }

  // MARK: What became of a write

  /// - Parameters:
  ///   - clearance: whether the address of a play or prepare may be asked for.
  ///   - failure: why a client's could not be written, so that it is undone.
  package mutating func written(
    _ write: Write, for requesterID: RequesterID?, clearance: Clearance = .send, failure: ErrorReport? = nil,
    _ context: inout Context
  ) {
    if let failure {
      // Unless the engine has begun or ended something meanwhile, it waits as before.
      if case .stopped(_, let before, let wasLost) = write, state == .idle, plan.deferredPlay != nil {
        (reported, isLost) = (before, wasLost)
      }
      return actions.append(.refuseUnwritten(requesterID, failure))
    }
    switch write {
    case .play(let request, _): playWritten(request, for: requesterID, clearance, &context)
    case .prepare(let request): prepareWritten(request, for: requesterID, clearance, &context)
    case .command(let action): actions.append(.send(action, for: requesterID))
    case .stopped(let ended, _, _):
      actions.append(.announceQueue(queueView()))
      actions.append(.answer(requesterID, ended))
    case .volume(let status): actions.append(.answer(requesterID, status))
    case .queue(let answer, let hasChanged, let stops):
      // What plays is heard until it is sure that it is to end.
      if stops, isToEnd, plan.deferredPlay == nil { stop(context) }
      actions.append(.answerQueue(requesterID, answer, hasChanged: hasChanged))
    }
  }

  private mutating func playWritten(
    _ request: PlayRequest, for requesterID: RequesterID?, _ clearance: Clearance, _ context: inout Context
  ) {
    guard let starting = plan.starting, starting.request.tag == request.tag else {
      return refuseOvertaken(request, for: requesterID)
    }
    // Asked for under the same tag before the engine's loss and after it: the later has been sent already.
    guard starting.requestID == nil else { return actions.append(.refuse(requesterID, .overtaken)) }
    let request = starting.request
    switch clearance {
    case .send: actions.append(.send(.play(request), for: requesterID))
    case .wait:
      plan.starting = nil
      actions.append(.note(.dropped(tag: request.tag)))
      hold(starting, for: requesterID, context)
    case .refuse(let report): playNotSent(request, for: requesterID, report, &context)
    }
  }

  /// Another has taken its place, which may yet be undone.
  mutating func refuseOvertaken(_ request: PlayRequest, for requesterID: RequesterID?) {
    actions.append(.note(.dropped(tag: request.tag)))
    actions.append(.refuse(requesterID, .overtaken))
  }

  private mutating func hold(_ play: StartingPlay, for requesterID: RequesterID?, _ context: Context) {
    plan.deferredPlay = play.entry == nil ? play.request : play.deferredBefore
    releaseHeld()
    var play = play
    play.heldAtMilliseconds = play.heldAtMilliseconds ?? context.nowMilliseconds
    isHeld = play.entry != nil
    actions.append(.hold(play, for: requesterID))
    actions.append(.save)
  }

  // MARK: What became of a command

  /// A command is on its way to the engine.
  package mutating func sent(_ action: EngineCommand.SessionAction, requestID: String) {
    actions.append(.note(.sent(action, requestID: requestID)))
    switch action {
    case .play(let request) where request.tag == plan.starting?.request.tag:
      plan.starting?.requestID = requestID
    case .prepare(let request) where request.tag == plan.prepared?.request.tag:
      plan.prepared?.requestID = requestID
    default: break
    }
  }

  private mutating func accept(_ action: EngineCommand.SessionAction) {
    switch action {
    case .stop: plan.isStopping = true
    case .unprepare: plan.prepared = nil
    default: break
    }
  }

  /// A command could not be sent.
  package mutating func notSent(
    _ action: EngineCommand.SessionAction, for requesterID: RequesterID?, _ report: ErrorReport,
    _ context: inout Context
  ) {
    switch action {
    case .play(let request) where request.score == nil:
      return playNotSent(request, for: requesterID, report, &context)
    case .prepare(let request):
      actions.append(.refuse(requesterID, report))
      actions.append(.note(.dropped(tag: request.tag)))
      return prepareAnswered(tag: request.tag, isError: true, &context)
    case .stop:
      plan.isStopping = false
      // A client's stop is refused; the Router's own takes effect here.
      if requesterID == nil, state != .idle { return endWithdrawn(context) }
    default: break
    }
    actions.append(.refuse(requesterID, report))
  }

  private mutating func playNotSent(
    _ request: PlayRequest, for requesterID: RequesterID?, _ report: ErrorReport, _ context: inout Context
  ) {
    actions.append(.refuse(requesterID, report))
    guard let starting = plan.starting, starting.request.tag == request.tag else { return }
    plan.starting = nil
    actions.append(.note(.dropped(tag: request.tag)))
    if starting.entry != nil { return resume(without: starting, &context) }
    report.code == .sourceCrashesEngine ? refuseCrashing(report, &context) : deferPlay(request)
  }

  /// What the queue wants next is refused: it kills the engine.
  private mutating func refuseCrashing(_ report: ErrorReport, _ context: inout Context) {
    actions.append(.broadcast(EngineEvent(.error(report), sessionID: id)))
    guard state == .idle || isLost else { return advanceFromRefused(&context) }
    plan.deferredPlay = nil
    actions.append(.report(lostEnd(.loadFailed, context)))
  }
}
