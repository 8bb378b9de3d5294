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

/// The packets a session has of its own, after a transition, in place of its timeline's.
struct SplicePackets {
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
