import WireProtocol

/// How a session comes to another engine while it is heard.
extension Playback {
  /// What another engine is to open so that it can play on.
  package struct Standby: Sendable, Equatable {
    /// Its beginning is where a loop begins anew.
    package var request: PlayRequest
    package var positionMilliseconds: Int

    package init(request: PlayRequest, positionMilliseconds: Int) {
      self.request = request
      self.positionMilliseconds = positionMilliseconds
    }
  }

  /// What stands by is to be heard for longer than it takes to get there.
  private static let minimumRemainingMilliseconds = 3_000

  /// What would have to stand by now; nil while something else is on its way, for what is not the queue's, and for a loop of
  /// which it is not known where it begins.
  package func standby(countedMilliseconds counted: Int) -> Standby? {
    guard isSettled, !plan.isStopping, !isHeld, !isToEnd, overload == nil,
      var request = continuation(countedMilliseconds: counted)
    else { return nil }
    let position = request.startMilliseconds
    let end = min(reported.durationMilliseconds ?? .max, request.endMilliseconds ?? .max)
    guard reported.live == true || end - position >= Self.minimumRemainingMilliseconds else { return nil }
    guard !request.loop || hasAskedForIt else { return nil }
    request.startMilliseconds = request.loop ? beganWith?.startMilliseconds ?? 0 : 0
    request.paused = false
    return Standby(request: request, positionMilliseconds: position)
  }

  /// Another engine plays on where the one before it has stopped. What follows is to be prepared there, unless it is about to
  /// be.
  package mutating func handedOver(_ context: inout Context) {
    plan.withdrawn = []
    if plan.prepared?.requestID != nil { prepareAgain(&context) }
  }
}
