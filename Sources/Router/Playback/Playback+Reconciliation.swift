import WireProtocol

/// What follows when the engine, or the Router before this one, was away.
extension Playback {
  /// The engine is away, and with it what was on its way to it.
  package mutating func loseEngine(_ context: Context) {
    loseStarting(hasBegun: plan.starting.map(hasBegun) ?? false)
    actions.append(.note(.lostEngine))
    if state != .idle { reported.positionMilliseconds = position(context) }
  }

  /// What was on its way to the engine is to be asked for at its return.
  ///
  /// - Parameter hasBegun: whether the engine played it, though the queue could not follow yet.
  mutating func loseStarting(hasBegun: Bool) {
    plan.isStopping = false
    guard let play = plan.starting else { return }
    plan.starting = nil
    plan.isAwaitingPrepared = false
    if let entry = play.entry { plan.queue.nowPlays(entry) }
    if !hasBegun { plan.deferredPlay = play.request }
  }

  /// A client's play that was held is asked for at the engine's return.
  package mutating func deferHeld(_ play: StartingPlay) {
    if let entry = play.entry { plan.queue.nowPlays(entry) }
    plan.deferredPlay = play.request
  }

  /// The engine was out of reach of this Router, or of the one before it, and plays this.
  package mutating func reconcile(with snapshot: SessionSnapshot, _ context: inout Context) {
    let wasPlaying = plays(snapshot)
    adopt(snapshot)
    guard !wantsOther(than: snapshot) else {
      // What was asked for last has not reached it.
      actions.append(.note(.found(snapshot, wasPlaying: wasPlaying)))
      return resume(&context)
    }
    plan.queueHasBegun()
    // What plays is known at once; the queue may have to be read first.
    move(to: snapshot, wasPlaying: wasPlaying, &context)
  }

  func wantsOther(than snapshot: SessionSnapshot) -> Bool {
    plan.wantedByQueue.map { $0.tag != snapshot.tag } ?? false
  }

  /// Whether that is what plays as far as is known.
  private func plays(_ snapshot: SessionSnapshot) -> Bool {
    state != .idle && reported.tag == snapshot.tag && reported.url == snapshot.url
  }

  /// Has the queue play what the engine plays.
  ///
  /// - Parameter wasPlaying: whether the session is known to have played it before.
  mutating func move(to snapshot: SessionSnapshot, wasPlaying: Bool, _ context: inout Context) {
    guard isQueueLoaded else {
      return actions.append(.loadQueue(then: .move(to: snapshot, wasPlaying: wasPlaying)))
    }
    actions.append(.note(.found(snapshot, wasPlaying: wasPlaying)))
    // An operator's, which has no tag, has been entered already where it played before, and left since.
    let mayBeMissing = !wasPlaying || snapshot.tag != nil
    if wasPlaying, isToEnd {
      // The stop has not reached the engine.
      stop(context)
    } else if mayBeMissing, !isCurrent(snapshot.url ?? "", snapshot.tag) {
      began(snapshot.url ?? "", snapshot.tag, title: snapshot.title, &context)
    }
    plan.withdrawn.removeAll { $0 == snapshot.url }
    prepareAgain(&context)
  }

  /// The queue has been left, and what plays was to be stopped.
  var isToEnd: Bool { plan.queue.current == nil && !playsScore && plan.starting == nil }

  /// Whether what was prepared has reached the engine is not known: it is prepared anew, and is not to begin otherwise.
  mutating func prepareAgain(_ context: inout Context) {
    guard var prepared = plan.prepared else { return }
    prepared.hasFailed = false
    if prepared.isClients { return prepare(prepared, for: nil) }
    plan.prepared = nil
    withdraw(prepared.request.tag)
    actions.append(.send(.unprepare, for: nil))
    prepareNextIfNeeded(&context)
  }

  /// The engine does not play the session any more.
  ///
  /// - Parameter isSameEngine: whether it has stayed up.
  package mutating func engineDoesNotPlay(isSameEngine: Bool, _ context: inout Context) {
    plan.withdrawn = []
    actions.append(.note(.missing))
    if plan.deferredPlay != nil {
      // What it was to take the place of is gone too.
      isLost = state != .idle
      return resume(&context)
    }
    if playsScore { return actions.append(.report(lostEnd(.cleanup, context))) }
    guard state != .idle else { return advanceFromEnded(&context) }
    forgetPrepared()
    isLost = true
    resumeLost(isSameEngine: isSameEngine, &context)
  }

  /// What has ended is followed by what the queue has next, unless something has been asked for meanwhile.
  mutating func advanceFromEnded(_ context: inout Context) {
    forgetPrepared()
    guard plan.starting == nil, plan.deferredPlay == nil, plan.queue.current != nil else { return }
    advance(after: .finished, &context)
  }

  /// Where the queue has another current entry than what played, it has been left, or has yet to be read.
  mutating func resumeLost(isSameEngine: Bool, _ context: inout Context) {
    guard isLost, plan.deferredPlay == nil else { return }
    guard isQueueLoaded || isCurrent(reported.url ?? "", reported.tag) else {
      return actions.append(.loadQueue(then: .resumeLost(isSameEngine: isSameEngine)))
    }
    if isToEnd { return actions.append(.report(lostEnd(.stopped, context))) }
    // One that has stayed up ends a session only for good; one that has restarted has lost it.
    isSameEngine ? actions.append(.report(lostEnd(.finished, context))) : resume(&context)
  }
}
