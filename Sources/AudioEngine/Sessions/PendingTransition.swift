import WireProtocol

/// A change in what a session sounds like that waits for its splice, and for the packet it happens at.
struct PendingTransition {
  enum Action {
    case pause(PendingRequest)
    case resume(PendingRequest)
    /// The session begins in the middle of the sound.
    case begin
    case stop(PendingRequest)
    case replace(NewPlay)
    case seek(TimelineLease, positionMilliseconds: Int, PendingRequest?)
    case volume(Double, TimelineLease, PendingRequest?)
    /// `end_ms` is reached, and the sound would continue.
    case endOfRange
  }

  /// What the old sound ends with: its last packet, faded, or the first one that goes over into the new sound.
  enum Fade {
    /// Nothing is heard that it would be of, or there is no room for it.
    case none
    /// It waits for a splicer.
    case waiting(UInt64)
    /// It is being rendered for a packet of the session's timeline.
    case rendering(UInt64, index: Int)
    /// - Parameter packet: nil where rendering failed.
    case ready([UInt8]?, index: Int)
  }

  let action: Action
  let askedNanoseconds: UInt64
  /// Whether there is sound to be spliced.
  let isHeard: Bool
  var fade = Fade.none
  /// How often it was put off, since its packet was due before its fade was there.
  var delayCount = 0
  /// What the new sound begins with; nil where it has no splice, or that is not asked for yet.
  var joint: SplicePackets?

  init(_ action: Action, isHeard: Bool, asked: UInt64) {
    self.action = action
    self.isHeard = isHeard
    askedNanoseconds = asked
  }

  /// The command that waits for it.
  var pendingRequest: PendingRequest? {
    switch action {
    case .pause(let pendingRequest), .resume(let pendingRequest), .stop(let pendingRequest): pendingRequest
    case .seek(_, _, let pendingRequest), .volume(_, _, let pendingRequest): pendingRequest
    case .replace(let play): play.pendingRequest
    case .begin, .endOfRange: nil
    }
  }
}

/// A splice that waits for a splicer.
struct SpliceRequest {
  let id: SessionID
  let number: UInt64
  /// What fades in; nil for the end of the old sound, which is made for a packet ahead when its turn comes.
  let incoming: Splice.Side?
  /// When its first packet is due, at the latest.
  let dueNanoseconds: UInt64
}
