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
  /// What was deferred when a client asked for this: deferred again where this is refused.
  var deferredBefore: PlayRequest?
  /// How what plays has ended while a client's own was on its way: the queue advances where that is refused.
  var endedMeanwhile: EngineEvent.EndReason?
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
