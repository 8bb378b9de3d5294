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

  /// How far its splice is.
  enum Stage {
    /// It waits for a splicer.
    case waiting
    /// Its first packets are being rendered.
    case rendering
    /// Its first packets are there, or cannot be.
    case ready
  }

  let action: Action
  let askedNanoseconds: UInt64
  /// Whether there is sound to be spliced.
  let isHeard: Bool
  var stage = Stage.waiting
  /// The packet of the session's timeline that it happens at, once it is rendered for that.
  var index = 0
  /// Numbers what is being rendered.
  var renderNumber: UInt64 = 0
  /// Whether the splice's first packet takes the place of the one at `index`, as the last of the old sound.
  var fadesOut = false
  /// That packet.
  var lastPacket: [UInt8]?
  /// What the new sound begins with. It is the same at whatever packet the old one ends.
  var joint = SplicePackets()
  /// How often it was put off, since its packet went out before the splice was there.
  var delayCount = 0

  init(_ action: Action, isHeard: Bool, now: UInt64) {
    self.action = action
    self.isHeard = isHeard
    askedNanoseconds = now
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

  /// Takes the first packet of each splice.
  mutating func take(_ packets: [[UInt8]]) {
    stage = .ready
    var packets = packets[...]
    if fadesOut { lastPacket = packets.popFirst() }
    if let first = packets.first { joint = SplicePackets(first, renderNumber: renderNumber) }
  }
}

/// The packets a session has of its own, after a transition, in place of its timeline's.
struct SplicePackets {
  private var packets: ArraySlice<[UInt8]> = []
  /// The packet of the timeline that the next of them replaces.
  private var index = 0
  /// Whether there are any, or will be.
  private var isActive = false
  private var renderNumber: UInt64 = 0

  init() {}

  init(_ first: [UInt8], renderNumber: UInt64) {
    packets = [first]
    isActive = true
    self.renderNumber = renderNumber
  }

  var isEmpty: Bool { packets.isEmpty }

  /// Takes the packets behind the first. Of what has ended meanwhile, none are wanted.
  mutating func append(_ rest: [[UInt8]], renderNumber: UInt64) {
    if isActive, renderNumber == self.renderNumber { packets += rest }
  }

  func placed(at index: Int) -> SplicePackets {
    var placed = self
    placed.index = index
    return placed
  }

  /// The packet to be sent in place of the timeline's at `index`.
  mutating func take(at index: Int) -> [UInt8]? {
    guard isActive else { return nil }
    guard index == self.index, let packet = packets.popFirst() else {
      self = SplicePackets()
      return nil
    }
    self.index += 1
    return packet
  }
}
