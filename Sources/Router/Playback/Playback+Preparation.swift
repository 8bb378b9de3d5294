import WireProtocol

/// What follows the current track without a gap: the engine is told before the end, and advances by itself.
extension Playback {
  /// Keeps the engine told what follows the current track, once its end is near. Called after every change.
  package mutating func prepareNextIfNeeded(_ context: inout Context) {
    guard isSettled, isQueueLoaded, plan.prepared?.isClients != true else { return }
    guard let next = plan.queue.following, let remaining = remainingMilliseconds(context),
      remaining <= RouterLimits.prepareAheadMilliseconds
    else { return withdrawPrepared() }
    if let prepared = plan.prepared, prepared.entry.id == next.id,
      prepared.request.bitrateKilobits == plan.queue.bitrateKilobits
    {
      return
    }
    withdrawPrepared()
    guard context.crashes.verdict(next.track.url, now: context.nowMilliseconds) == .send else { return }
    prepare(PreparedPlay(entry: next, request: request(for: next, &context), isClients: false), for: nil)
  }

  /// What is left of the track; nil where it has no end.
  private func remainingMilliseconds(_ context: Context) -> Int? {
    guard reported.loop != true, let duration = reported.durationMilliseconds else { return nil }
    return min(duration, beganWith?.endMilliseconds ?? duration) - position(context)
  }

  /// Sends a prepare once it is on disk, as a play.
  mutating func prepare(_ play: PreparedPlay, for requesterID: RequesterID?) {
    plan.prepared = play
    actions.append(.write(.prepare(play.request), for: requesterID))
  }

  mutating func prepareWritten(
    _ request: PlayRequest, for requesterID: RequesterID?, _ clearance: Clearance, _ context: inout Context
  ) {
    guard let prepared = plan.prepared, prepared.request.tag == request.tag else {
      return refuseOvertaken(request, for: requesterID)
    }
    switch clearance {
    case .send: actions.append(.send(.prepare(request), for: requesterID))
    case .wait: notSent(.prepare(request), for: requesterID, .isTried, &context)
    case .refuse(let report): notSent(.prepare(request), for: requesterID, report, &context)
    }
  }

  /// What the engine answers to a `prepare`, or why it was not asked.
  package mutating func prepareAnswered(tag: String?, isError: Bool, _ context: inout Context) {
    guard isError, plan.prepared?.request.tag == tag else { return }
    plan.prepared?.hasFailed = true
    if let tag { actions.append(.playEnded(tag: tag)) }
    guard plan.isAwaitingPrepared else { return }
    forgetPrepared()
    if plan.starting != nil {
      plan.starting?.endedMeanwhile = .finished
    } else {
      advance(after: .finished, &context)
    }
  }

  private mutating func withdrawPrepared() {
    guard let prepared = plan.prepared else { return }
    plan.prepared = nil
    guard !prepared.hasFailed, prepared.requestID != nil else { return }
    withdraw(prepared.request.tag)
    actions.append(.note(.dropped(tag: prepared.request.tag)))
    if let tag = prepared.request.tag { actions.append(.playEnded(tag: tag)) }
    actions.append(.save)
    actions.append(.send(.unprepare, for: nil))
  }

  mutating func forgetPrepared() {
    plan.prepared = nil
    plan.isAwaitingPrepared = false
  }
}

extension ErrorReport {
  /// A prepare of what the engine may have died of, while another is tried.
  fileprivate static let isTried = ErrorReport(
    .engineUnavailable, "this track may have crashed the engine; others are retried first", hint: "try again",
    stage: .command)
}
