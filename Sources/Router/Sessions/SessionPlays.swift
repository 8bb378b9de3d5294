import WireProtocol

/// A play that the engine has not begun.
struct StartingPlay {
  let request: PlayRequest
  /// The entry of what a client asked for by itself: of the queue once it plays.
  let entry: QueueEntry?
  /// Nil until it is sent, which waits until it is on disk.
  var requestID: String?
  /// When it first had to wait for a suspect (`CrashBook`).
  var heldAtMilliseconds: Int?
  /// What was owed when a client asked for this: owed again where this is refused.
  var owedBefore: PlayRequest?
  /// How what plays has ended while a client's own was on its way: the queue goes on where that is refused.
  var endedMeanwhile: EngineEvent.EndReason?
}

/// What the engine was asked to go on to by itself when the current track has finished.
package struct PreparedPlay: Codable, Sendable, Equatable {
  package let entry: QueueEntry
  package let request: PlayRequest
  /// A client asked for it; the queue's own next track waits.
  package let isClients: Bool
  /// Nil until it is sent, which waits until it is on disk.
  package var requestID: String?
  /// The engine will not go on to it.
  package var hasFailed = false
}
