import WireProtocol

/// Back to what was before clients' commands that could not be written.
extension Playback {
  /// What clients' commands may be undone to, until the disk has confirmed them.
  package struct Undo: Sendable {
    let plan: Plan
    /// A transaction takes milliseconds, so that these are few.
    package private(set) var since: [Happening] = []

    package init(_ playback: Playback) { plan = playback.plan }

    package mutating func note(_ happening: Happening) { since.append(happening) }
  }

  /// What stays in effect whatever becomes of a client's command, and is repeated after an undo: in the same order,
  /// since an engine's loss after an event means another thing than before it.
  package enum Happening: Sendable, Equatable {
    case reported(EngineEvent)
    case sent(EngineCommand.SessionAction, requestID: String)
    /// A play or prepare comes to nothing.
    case dropped(tag: String?)
    case lostEngine
    /// The engine that is back plays this.
    case found(SessionSnapshot, wasPlaying: Bool)
    /// The engine that is back does not play the session.
    case missing
  }

  /// To be followed by `repeat` for each that has happened since, and by `resumeAfterUndo`.
  package mutating func undo(to undo: Undo) {
    // Without its rows the queue was on disk, and is read again.
    plan = undo.plan
  }

  package mutating func `repeat`(_ happening: Happening, _ context: inout Context) {
    switch happening {
    case .reported(let event): follow(event, &context)
    case .sent(let action, let requestID):
      sent(action, requestID: requestID)
      if action == .stop, plan.starting == nil { plan.isStopping = true }
    case .dropped(let tag): drop(tag, &context)
    // What had begun by then has been repeated.
    case .lostEngine: loseStarting(hasBegun: false)
    case .found(let snapshot, let wasPlaying):
      guard !wantsOther(than: snapshot) else { return }
      plan.queueHasBegun()
      move(to: snapshot, wasPlaying: wasPlaying, &context)
    case .missing: if state == .idle { advanceFromEnded(&context) }
    }
  }

  private mutating func drop(_ tag: String?, _ context: inout Context) {
    prepareAnswered(tag: tag, isError: true, &context)
    guard let play = plan.starting, play.request.tag == tag else { return }
    plan.starting = nil
    play.entry == nil ? deferPlay(play.request) : resume(without: play, &context)
  }

  /// With clients' commands, what the Router has done meanwhile is undone too: it may have taken note of what the
  /// engine plays, asked for what was lost, and waited for what is deferred again.
  package mutating func resumeAfterUndo(_ context: inout Context) {
    if state != .idle, !isLost, !wantsOther(than: reported) {
      plan.queueHasBegun()
      return move(to: reported, wasPlaying: true, &context)
    }
    guard plan.starting == nil else { return }
    if let deferred = plan.deferredPlay { return deferPlay(deferred) }
    guard isLost else { return }
    if isToEnd { return actions.append(.report(lostEnd(.stopped, context))) }
    if let lost = continuation(countedMilliseconds: context.positionMilliseconds) { deferPlay(lost) }
  }
}
