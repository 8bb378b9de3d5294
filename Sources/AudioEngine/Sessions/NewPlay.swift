import WireProtocol

/// A `play`, or a track that follows by itself, with everything a session needs to begin.
package struct NewPlay: Sendable {
  let id: SessionID
  let request: PlayRequest
  let source: MediaSource
  let lease: TimelineLease
  /// Nil for a track that follows by itself: nobody waits for it.
  let pendingRequest: PendingRequest?
  /// Where it begins for once, where it stands by for another engine to stop; nil for one that is to be heard.
  let standbyMilliseconds: Int?

  package init(
    id: SessionID, request: PlayRequest, source: MediaSource, lease: TimelineLease,
    pendingRequest: PendingRequest?, standbyMilliseconds: Int? = nil
  ) {
    self.id = id
    self.request = request
    self.source = source
    self.lease = lease
    self.pendingRequest = pendingRequest
    self.standbyMilliseconds = standbyMilliseconds
  }
}

/// The track that follows when the current one has finished.
struct PreparedTrack {
  var play: NewPlay
  /// Numbers the timeline asked for: that of another volume takes the place of the first.
  var number: UInt64
  /// The `prepare` that waits for its answer.
  var pendingRequest: PendingRequest?
}
