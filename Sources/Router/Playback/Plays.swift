import WireProtocol

/// A play that the engine has not begun.
package struct StartingPlay: Sendable, Equatable {
  package let request: PlayRequest
  /// The entry of what a client asked for by itself: of the queue once it plays.
  package let entry: QueueEntry?
  /// Nil until it is sent, which waits until it is on disk.
  package var requestID: String?
  /// When it first had to wait for a suspect (`CrashTracker`).
  package var heldAtMilliseconds: Int?
  /// What the queue waited for when a client asked for this: deferred again where this is refused, unless the engine
  /// has begun with it meanwhile.
  var deferredBefore: PlayRequest?
  /// How what plays has ended while a client's own was on its way: the queue advances where that is refused.
  var endedMeanwhile: EngineEvent.EndReason?

  /// What the queue wants: this, or what this was to go before.
  var ofQueue: PlayRequest? { entry == nil ? request : deferredBefore }
}

extension Playback.Plan {
  /// What the queue is to play as soon as it can be asked for, though a client's own may go before it.
  var wantedByQueue: PlayRequest? { deferredPlay ?? starting?.deferredBefore }

  /// The engine plays what the queue wanted, or what takes its place.
  mutating func queueHasBegun() {
    deferredPlay = nil
    starting?.deferredBefore = nil
    starting?.endedMeanwhile = nil
  }
}

/// What the engine was asked to advance to by itself when the current track has finished.
package struct PreparedPlay: Codable, Sendable, Equatable {
  package let entry: QueueEntry
  package let request: PlayRequest
  /// A client asked for it; the queue's own next track waits.
  package let isClients: Bool
  /// Nil until it is sent, which waits until it is on disk.
  package var requestID: String?
  /// The engine will not advance to it.
  package var hasFailed = false
}
