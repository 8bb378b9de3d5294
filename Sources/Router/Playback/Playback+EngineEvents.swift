import WireProtocol

/// What the engine does, and how it moves the queue.
extension Playback {
  // MARK: What plays

  /// Takes the engine's word for what plays, at once: `follow` is to come, and may have to wait for the queue.
  package mutating func apply(_ event: EngineEvent) {
    let tagBefore = reported.tag
    take(event.body)
    if let tagBefore, tagBefore != reported.tag { actions.append(.playEnded(tag: tagBefore)) }
    switch event.body {
    case .playing, .paused, .resumed: if let tag = reported.tag { actions.append(.playBegan(tag: tag)) }
    case .prepared: if let tag = plan.prepared?.request.tag { actions.append(.playBegan(tag: tag)) }
    default: break
    }
  }

  mutating func take(_ body: EngineEvent.Body) {
    switch body {
    case .extracting(let url, let tag): opening(url, tag)
    case .ready(let ready): opened(ready)
    case .playing, .resumed, .rebased:
      reported.state = .streaming
      reported.buffering = false
    case .seeked(let position, _):
      reported.buffering = false
      reported.positionMilliseconds = position
    case .paused(let position):
      reported.state = .paused
      reported.buffering = false
      reported.positionMilliseconds = position
    case .buffering: reported.buffering = true
    case .metadata(let metadata):
      reported.title = metadata.title
      reported.artist = metadata.artist
    case .status(let snapshot): describe(snapshot)
    case .ended:
      isLost = false
      reported = SessionSnapshot(sessionID: id, state: .idle)
    case .muted(let roles): reported.muted = roles
    case .hello, .dropped, .prepared, .stuck, .media, .artwork, .resolved, .why, .error, .performing,
      .rendered, .burst, .listed:
      break
    }
  }

  /// Takes the engine's word for what plays since before the connection.
  mutating func adopt(_ snapshot: SessionSnapshot) {
    isLost = false
    beganWith = play(named: snapshot.tag)
    describe(snapshot)
  }

  private mutating func describe(_ snapshot: SessionSnapshot) {
    let chapters = snapshot.url == reported.url ? reported.chapters : nil
    reported = snapshot
    reported.chapters = snapshot.chapters ?? chapters
    plan.volume = snapshot.volume ?? plan.volume
  }

  private mutating func opening(_ url: String, _ tag: String?) {
    isLost = false
    reported = SessionSnapshot(sessionID: id, state: .extracting)
    reported.url = url
    reported.tag = tag
    beganWith = play(named: tag)
    hasAskedForIt = beganWith != nil
    guard let request = beganWith else { return }
    plan.volume = request.volume
    reported.volume = request.volume
    reported.loop = request.loop
    reported.bitrateKilobits = request.bitrateKilobits
    reported.positionMilliseconds = request.startMilliseconds
  }

  /// The play of that tag, where this Router asked for it.
  private func play(named tag: String?) -> PlayRequest? {
    guard let tag else { return nil }
    let plays = [plan.starting?.request, plan.prepared?.request, plan.deferredPlay, beganWith]
    return plays.lazy.compactMap(\.self).first { $0.tag == tag }
  }

  private mutating func opened(_ ready: Ready) {
    reported.url = ready.url
    reported.title = ready.title
    reported.artist = ready.artist
    reported.album = ready.album
    reported.artwork = ready.artwork
    reported.live = ready.live
    reported.station = ready.station
    reported.genre = ready.genre
    reported.chapters = ready.chapters ?? []
    reported.volume = ready.volume ?? reported.volume
    reported.loop = ready.loop ?? reported.loop
    plan.volume = plan.wantedVolume ?? ready.volume ?? plan.volume
    reported.durationMilliseconds = ready.durationMilliseconds
    reported.codec = ready.codec
    reported.passthrough = ready.passthrough
  }

  /// Whether that play is of the queue's current entry.
  func isCurrent(_ url: String, _ tag: String?) -> Bool {
    guard let current = plan.queue.current else { return false }
    return tag.map { $0.hasPrefix(current.id + ".") } ?? (current.track.url == url)
  }

  // MARK: What follows

  /// Does what had to wait for the queue.
  package mutating func resume(_ step: Step, _ context: inout Context) {
    switch step {
    case .follow(let event): follow(event, &context)
    // A client may have moved the queue meanwhile.
    case .advance(let reason, let id): if plan.queue.current?.id == id { advance(after: reason, &context) }
    case .resumeLost(let isSameEngine): resumeLost(isSameEngine: isSameEngine, &context)
    case .move(let snapshot, let wasPlaying): move(to: snapshot, wasPlaying: wasPlaying, &context)
    }
  }

  package mutating func follow(_ event: EngineEvent, _ context: inout Context) {
    // Needs the current entry alone, which is never on disk only.
    if case .metadata(let metadata) = event.body {
      actions.append(.note(.reported(event)))
      return describeCurrent(metadata)
    }
    guard isQueueLoaded else { return actions.append(.loadQueue(then: .follow(event))) }
    actions.append(.note(.reported(event)))
    switch event.body {
    case .extracting(let url, let tag):
      if !isOfEarlierPlay(tag, event.requestID) { began(url, tag, &context) }
    case .ready(let ready) where isCurrent(ready.url, reported.tag):
      plan.queue.describeCurrent { $0.complete(with: ready) }
    case .error(let report): failed(report, requestID: event.requestID, &context)
    case .ended(let reason, _): ended(reason, &context)
    default: break
    }
    prepareNextIfNeeded(&context)
    actions.append(.followed(event.body))
  }

  /// A station's title is what its entry is called while it plays.
  private mutating func describeCurrent(_ metadata: StreamMetadata) {
    guard let url = reported.url, isCurrent(url, reported.tag) else { return }
    plan.queue.describeCurrent { track in
      track.title = metadata.title ?? reported.station
      track.artist = metadata.artist
    }
    actions.append(.saveThenAnnounceQueue(queueView()))
  }

  /// Whether it was asked for before the engine's loss, and under the same tag again since.
  private func isOfEarlierPlay(_ tag: String?, _ requestID: String?) -> Bool {
    guard let requestID, let starting = plan.starting, starting.request.tag == tag else { return false }
    return starting.requestID != requestID
  }

  /// The engine plays something: has the queue play the same, or waits for what the queue wants.
  mutating func began(_ url: String, _ tag: String?, title: String? = nil, _ context: inout Context) {
    let wasAwaitingPrepared = plan.isAwaitingPrepared
    plan.isAwaitingPrepared = false
    if let tag, let wanted = plan.wantedByQueue, wanted.tag != tag, plan.starting?.request.tag != tag {
      // Asked for before what is deferred, which follows.
      if plan.prepared?.request.tag == tag { plan.prepared = nil }
      return
    }
    plan.queueHasBegun()
    if let starting = plan.starting, starting.request.tag == tag {
      return beganStarting(starting, url, &context)
    }
    // What was asked for before: the play on its way follows. A client's own may yet be refused.
    if let starting = plan.starting, starting.entry == nil { return }
    if let prepared = plan.prepared, prepared.request.tag == tag { return beganPrepared(prepared) }
    if plan.withdrawn.contains(tag ?? url) {
      return beganWithdrawn(wasAwaited: wasAwaitingPrepared, &context)
    }
    if let tag { return beganEntry(PlayTags.entryID(tag), url, title, &context) }
    // Another router's, or an operator's.
    plan.prepared = nil
    changeQueue { queue in
      url == PlayRequest.scoreURL
        ? queue.nowPlaysNothing() : queue.nowPlays(queue.newEntry(QueuedTrack(url: url)))
    }
  }

  private mutating func beganStarting(_ play: StartingPlay, _ url: String, _ context: inout Context) {
    plan.starting = nil
    plan.prepared = nil
    if let entry = play.entry { return changeQueue { $0.nowPlays(entry) } }
    if let tag = play.request.tag { beganEntry(PlayTags.entryID(tag), url, nil, &context) }
  }

  private mutating func beganPrepared(_ play: PreparedPlay) {
    plan.prepared = nil
    changeQueue { queue in
      if play.isClients || !queue.didAdvance(to: play.entry.id) { queue.nowPlays(play.entry) }
    }
  }

  /// It plays, and is not to be heard.
  ///
  /// - Parameter wasAwaited: whether it follows a track that has finished.
  private mutating func beganWithdrawn(wasAwaited: Bool, _ context: inout Context) {
    plan.starting?.endedMeanwhile = .finished
    if wasAwaited { advance(after: .finished, &context) }
    if plan.starting == nil { stop(context) }
  }

  /// The engine plays an entry that it was told of before now.
  private mutating func beganEntry(_ id: String, _ url: String, _ title: String?, _ context: inout Context) {
    guard plan.queue.current?.id != id else { return }
    // What the queue has left while the engine was out of reach is not to be heard any more.
    if plan.queue.hasLeft(id) { return beganWithdrawn(wasAwaited: false, &context) }
    if plan.queue.holds(id), plan.prepared?.isClients == false {
      // Prepared before the engine or this Router was out of reach, and prepared again since.
      plan.prepared = nil
      actions.append(.send(.unprepare, for: nil))
    }
    // A client's own is of the queue from here on, under the name that its tag has: under another it would be missing
    // again at the next reconciliation.
    changeQueue { queue in
      if !queue.didAdvance(to: id) { queue.nowPlays(QueueEntry(id: id, QueuedTrack(url: url, title: title))) }
    }
  }

  private mutating func ended(_ reason: EngineEvent.EndReason, _ context: inout Context) {
    let wasStopping = plan.isStopping
    if reason == .stopped { plan.isStopping = false }
    // Of what played before the play that is on its way.
    if let starting = plan.starting, starting.entry == nil || reason == .replaced { return }
    if plan.deferredPlay != nil {
      // Of what played before what is deferred; a stop that was asked for later is for both.
      guard wasStopping, reason == .stopped else { return }
      plan.deferredPlay = nil
    }
    let overload = self.overload
    self.overload = nil
    if let prepared = plan.prepared, !prepared.hasFailed, reason == .finished {
      // The engine advances to it, and says so next; or it says that the prepare has come too late.
      plan.isAwaitingPrepared = true
      return
    }
    plan.prepared = nil
    guard plan.starting == nil else {
      plan.starting?.endedMeanwhile = reason
      return
    }
    if let overload, reason == .loadFailed, let entry = plan.queue.current {
      return playRefused(request(for: entry, &context), overload, &context)
    }
    advance(after: reason, &context)
  }

  private mutating func failed(_ report: ErrorReport, requestID: String?, _ context: inout Context) {
    if report.code == .noSuchSession, plan.isStopping {
      plan.isStopping = false
      // There was nothing to stop: nobody else is going to say that the queue is to be left.
      if state == .idle, plan.starting == nil {
        plan.deferredPlay = nil
        forgetPrepared()
        changeQueue { _ = $0.ended(.stopped) }
      }
    }
    if let requestID, let prepared = plan.prepared, prepared.requestID == requestID {
      return prepareAnswered(tag: prepared.request.tag, isError: true, &context)
    }
    if let requestID, let starting = plan.starting, starting.requestID == requestID {
      // Refused before it began, so that no end will be reported.
      plan.starting = nil
      if let tag = starting.request.tag { actions.append(.playEnded(tag: tag)) }
      if starting.entry == nil {
        playRefused(starting.request, report, &context)
      } else {
        resume(without: starting, &context)
      }
    } else if report.code == .overloaded, state == .extracting {
      overload = report
    }
  }

  /// A play that the queue wanted was refused. What the engine has no room for now is asked for again; anything else will
  /// not become better.
  private mutating func playRefused(
    _ request: PlayRequest, _ report: ErrorReport, _ context: inout Context
  ) {
    guard ![.tooManySessions, .workersExhausted, .overloaded, .engineUnavailable].contains(report.code) else {
      return deferPlay(request)
    }
    advanceFromRefused(&context)
  }

  /// The queue advances from what will not become better.
  mutating func advanceFromRefused(_ context: inout Context) {
    plan.deferredPlay = nil
    // The engine that played it is gone, and no other end will be reported.
    guard !isLost else { return actions.append(.report(lostEnd(.loadFailed, context))) }
    advance(after: .loadFailed, &context)
    // What played before was to make room.
    if plan.queue.current == nil, state != .idle { stop(context) }
  }

  mutating func advance(after reason: EngineEvent.EndReason, _ context: inout Context) {
    guard isQueueLoaded else {
      return actions.append(.loadQueue(then: .advance(after: reason, from: plan.queue.current?.id)))
    }
    var action: TrackQueue.Action?
    changeQueue { action = $0.ended(reason) }
    if case .play(let entry) = action { begin(entry, &context) }
  }

  /// The queue must be in memory.
  mutating func changeQueue(_ change: (inout TrackQueue) -> Void) {
    let before = plan.queue.view()
    change(&plan.queue)
    let queue = plan.queue.view()
    guard queue != before || plan.queue.hasChangedRows else { return }
    actions.append(.saveThenAnnounceQueue(queue))
  }

  func lostEnd(_ reason: EngineEvent.EndReason, _ context: Context) -> EngineEvent {
    EngineEvent(.ended(reason, positionMilliseconds: position(context)), sessionID: id)
  }
}
