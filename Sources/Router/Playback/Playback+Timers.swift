import WireProtocol

/// What is asked for again, and what has waited for too long.
extension Playback {
  /// Asks for what is deferred, or for what played when the engine was lost.
  mutating func resume(_ context: inout Context) {
    guard plan.starting == nil,
      var request = plan.deferredPlay ?? continuation(countedMilliseconds: context.positionMilliseconds)
    else { return }
    // An operator's has none; without one it would be taken for another play of an operator's.
    if request.tag == nil, isCurrent(request.url, nil) {
      request.tag = plan.queue.current.map { context.tags.next(for: $0) }
    }
    actions.append(.logResumption(request))
    begin(StartingPlay(request: request, entry: nil), for: nil)
  }

  /// A client's own play comes to nothing, and is the client's to ask for again: what it was to replace resumes.
  package mutating func resume(without play: StartingPlay, _ context: inout Context) {
    if let deferred = play.deferredBefore { return deferPlay(deferred) }
    guard let reason = play.endedMeanwhile else { return isLost ? resume(&context) : () }
    advance(after: reason, &context)
    // What is not to be heard was to make room for it.
    if isToEnd, state != .idle { stop(context) }
  }

  mutating func deferPlay(_ request: PlayRequest) {
    plan.deferredPlay = request
    actions.append(.save)
    actions.append(.startRetryTimer)
  }

  /// The retry timer has fired.
  package mutating func retry(_ context: inout Context) {
    guard let deferred = plan.deferredPlay else { return }
    // A client's own goes first.
    guard !isHeld else { return deferPlay(deferred) }
    // Without an engine, its return asks.
    if context.isEngineConnected { resume(&context) }
  }

  /// The engine has not answered a play in time.
  package mutating func playExpired(requestID: String, _ context: inout Context) {
    guard let starting = plan.starting, starting.requestID == requestID else { return }
    plan.starting = nil
    actions.append(.note(.dropped(tag: starting.request.tag)))
    resume(without: starting, &context)
  }
}
