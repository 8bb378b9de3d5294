import WireProtocol

/// A change in what a session sounds like that waits for its splice, and for the packet it happens at.
struct PendingCut {
  enum Action {
    case pause(Inquiry)
    case resume(Inquiry)
    /// The session begins in the middle of the sound.
    case begin
    case stop(Inquiry)
    case replace(NewPlay)
    case seek(TimelineLease, positionMilliseconds: Int, Inquiry?)
    case volume(Double, TimelineLease, Inquiry?)
    /// `end_ms` is reached, and the sound would go on.
    case endOfRange
  }

  let number: UInt64
  /// The packet of the session's timeline that it happens at.
  let index: Int
  let action: Action
  /// Whether the splice's first packet takes the place of the one at `index`, as the last of the old sound.
  let fadesOut: Bool
  /// Whether there is sound to be spliced.
  let isHeard: Bool
  /// Nil until the splice is rendered.
  var packets: [[UInt8]]?

  /// Who waits for it.
  var inquiry: Inquiry? {
    switch action {
    case .pause(let inquiry), .resume(let inquiry), .stop(let inquiry): inquiry
    case .seek(_, _, let inquiry), .volume(_, _, let inquiry): inquiry
    case .replace(let play): play.inquiry
    case .begin, .endOfRange: nil
    }
  }
}

/// A `play`, or a track that follows by itself, with everything a session needs to begin.
struct NewPlay: Sendable {
  let id: SessionID
  let request: PlayRequest
  let source: MediaSource
  let lease: TimelineLease
  /// Nobody waits for a track that follows by itself.
  let inquiry: Inquiry?
}

/// The track that follows when the current one has finished.
struct PreparedTrack {
  var play: NewPlay
  /// Numbers the timeline asked for: that of another volume takes the place of the first.
  var number: UInt64
  /// The `prepare` that waits for its answer.
  var inquiry: Inquiry?
}

/// The packets a session has of its own, after a cut, in place of its timeline's.
struct JointPackets {
  private var packets: ArraySlice<[UInt8]> = []
  private var index = 0

  mutating func set(_ packets: ArraySlice<[UInt8]>, at index: Int) {
    self.packets = packets
    self.index = index
  }

  /// The packet to be sent in place of the timeline's at `index`.
  mutating func take(at index: Int) -> [UInt8]? {
    guard !packets.isEmpty else { return nil }
    guard index == self.index else {
      packets = []
      return nil
    }
    self.index += 1
    return packets.popFirst()
  }
}
