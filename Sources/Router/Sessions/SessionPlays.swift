import WireProtocol

/// A play that was sent, and that the engine has not begun.
struct StartingPlay {
  let requestID: String
  let request: PlayRequest
  /// The entry of what a client asked for by itself: of the queue once it plays.
  let entry: QueueEntry?
}

/// What the engine was asked to go on to by itself when the current track has finished.
struct PreparedPlay {
  let entry: QueueEntry
  let request: PlayRequest
  let requestID: String
  /// A client asked for it; the queue's own next track waits.
  let isClients: Bool
  /// The engine will not go on to it.
  var hasFailed = false
}
