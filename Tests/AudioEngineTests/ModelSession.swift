import WireProtocol

/// One session as a router follows it by counting packets.
struct ModelSession {
  private enum State { case opening, ready, streaming, buffering, paused }

  private static let packetMilliseconds = WireLimits.packetDurationMilliseconds

  let id: SessionID
  private let play: PlayRequest
  private let requests: SimulatedRequests
  private let track: Int
  /// Whether its audio may go to others alone: then it has the place that it was told last.
  private var mayHaveOwner: Bool { requests.mayHaveOwner(id) }
  private var state = State.opening
  private var position: Int?
  private var dueNanoseconds: UInt64 = 0
  /// Before this no packet may come, whatever is said of when it is due.
  private var earliestNanoseconds: UInt64 = 0
  /// Another engine plays it until it is said, right before the first packet, when that is due.
  private var isToBegin = false
  private(set) var volume: Double
  /// What it is about to end of.
  private var lastError: ErrorReport?

  init(_ id: SessionID, tag: String?, _ requests: SimulatedRequests) throws(Violation) {
    guard let play = requests.play(tag) else { throw Violation("\(id): nobody asked for \(tag ?? "it")") }
    self.id = id
    self.play = play
    self.requests = requests
    track = Int(play.url.dropFirst("media:".count))!
    volume = play.volume
  }

  /// A session that `hello` tells of, or that is taken over.
  init(_ snapshot: SessionSnapshot, _ requests: SimulatedRequests) throws(Violation) {
    try self.init(snapshot.sessionID, tag: snapshot.tag, requests)
    isToBegin = requests.isTakenOver(snapshot.sessionID)
    volume = snapshot.volume!
    position = snapshot.positionMilliseconds
    dueNanoseconds = snapshot.dueNanoseconds ?? 0
    state =
      switch snapshot.state {
      case .idle, .extracting: .opening
      case .paused: .paused
      case .streaming where snapshot.buffering == true: .buffering
      case .streaming: snapshot.dueNanoseconds == nil ? .ready : .streaming
      }
  }

  private func fail(_ what: String) -> Violation {
    Violation("\(id) (\(play.url), \(state) at \(position.map(String.init) ?? "no place")): \(what)")
  }

  // MARK: What is heard

  mutating func hear(_ packet: SimulatedPacket, now: UInt64) throws(Violation) {
    guard state == .streaming, let position else { throw fail("a packet while \(state)") }
    if packet.kind != .silence {
      guard packet.track == track else { throw fail("a packet of track \(packet.track)") }
      guard packet.positionMilliseconds == position else {
        throw fail("a packet of \(packet.positionMilliseconds) ms")
      }
      guard packet.volume == Int((volume * 10).rounded()) else {
        throw fail("a packet of volume \(packet.volume), not \(volume)")
      }
    }
    guard now >= dueNanoseconds || requests.isHandedOver(id) else {
      throw fail("a packet \(dueNanoseconds - now) ns early")
    }
    guard dueNanoseconds >= earliestNanoseconds else {
      throw fail("a packet \(earliestNanoseconds - dueNanoseconds) ns after too short a time")
    }
    advance(1)
  }

  /// A packet that was sent before. Its volume may be that of what comes.
  func hearAgain(_ packet: SimulatedPacket, at place: Int) throws(Violation) {
    guard packet.kind == .timeline, packet.track == track, packet.positionMilliseconds == place else {
      throw fail(
        "a packet of \(packet.positionMilliseconds) ms of track \(packet.track) in a burst at \(place)")
    }
  }

  private mutating func advance(_ count: Int) {
    position! += count * Self.packetMilliseconds
    dueNanoseconds += UInt64(count) * WireLimits.packetDurationNanoseconds
    earliestNanoseconds = dueNanoseconds
  }

  func checkPunctuality(now: UInt64) throws(Violation) {
    guard state == .streaming, dueNanoseconds <= now, !mayHaveOwner, !isToBegin,
      !requests.isHandedOver(id)
    else { return }
    throw fail("the packet due \(now - dueNanoseconds) ns ago has not come")
  }

  // MARK: What is told

  /// - Parameter isAnswer: whether it answers a command, as it does where a play cannot be opened.
  mutating func fail(_ report: ErrorReport, isAnswer: Bool) {
    if !isAnswer || state == .opening { lastError = report }
  }

  mutating func change(_ event: EngineEvent) throws(Violation) {
    switch event.body {
    case .ready(let ready):
      try require(.opening, event: event)
      state = .ready
      position = roundedDown(play.startMilliseconds)
      volume = ready.volume!
    case .playing(let anchor):
      try require(.ready, .buffering, .streaming, event: event)
      if anchor.positionMilliseconds != position, !mayHaveOwner {
        guard play.loop, isAtEnd, anchor.positionMilliseconds == roundedDown(play.startMilliseconds) else {
          throw fail("playing at \(anchor.positionMilliseconds)")
        }
      } else if state == .streaming, !play.loop || !isAtEnd, !mayHaveOwner {
        throw fail("playing, which it was told already")
      }
      begin(anchor)
    case .resumed(let anchor):
      try require(.paused, event: event)
      try comparePosition(anchor.positionMilliseconds)
      begin(anchor)
    case .rebased(let anchor):
      try require(.streaming, event: event)
      isToBegin = false
      try comparePosition(anchor.positionMilliseconds)
      // Where a seek was told in between, with the new time.
      guard anchor.dueNanoseconds >= dueNanoseconds else { throw fail("rebased, and due earlier") }
      begin(anchor)
    case .seeked(let place, let due):
      try require(.streaming, .buffering, .paused, event: event)
      if let wanted = event.requestID.flatMap(requests.seek), place != roundedDown(wanted) {
        throw fail("seeked to \(place), not to \(wanted)")
      }
      guard (due == nil) == (state == .paused) else {
        throw fail("seeked, due \(due.map(String.init) ?? "never")")
      }
      position = place
      if let due { begin(EngineEvent.Anchor(positionMilliseconds: place, dueNanoseconds: due)) }
    case .paused(let place):
      try require(.ready, .streaming, .buffering, event: event)
      try comparePosition(place)
      state = .paused
    case .buffering(let place):
      try require(.streaming, event: event)
      try comparePosition(place)
      state = .buffering
    case .stuck(let place, _):
      try require(.buffering, event: event)
      try comparePosition(place)
    case .dropped(let count):
      if state == .streaming { advance(count) } else { position = nil }
    default: break
    }
    lastError = nil
  }

  private mutating func begin(_ anchor: EngineEvent.Anchor) {
    state = .streaming
    position = anchor.positionMilliseconds
    dueNanoseconds = anchor.dueNanoseconds
  }

  mutating func compare(_ snapshot: SessionSnapshot) throws(Violation) {
    guard snapshot.tag == play.tag else { throw fail("a status of \(snapshot.tag ?? "no play")") }
    let isAlike: Bool =
      switch (state, snapshot.state) {
      case (.opening, .extracting): true
      case (.paused, .paused): snapshot.buffering == nil
      case (.ready, .streaming), (.streaming, .streaming): snapshot.buffering == nil
      case (.buffering, .streaming): snapshot.buffering == true
      default: false
      }
    guard isAlike else { throw fail("a status of \(snapshot.state)") }
    if state != .opening { try comparePosition(snapshot.positionMilliseconds!) }
    // It may know of a restart of the schedule that is told with the next packet.
    if state == .streaming, snapshot.dueNanoseconds ?? 0 < dueNanoseconds {
      throw fail("a status due earlier")
    }
    if mayHaveOwner, let due = snapshot.dueNanoseconds { dueNanoseconds = due }
    volume = snapshot.volume!
  }

  mutating func end(_ reason: EngineEvent.EndReason, _ place: Int) throws(Violation) {
    if state != .opening { try comparePosition(place) }
    switch reason {
    case .finished:
      guard isAtEnd || lastError != nil else { throw fail("finished before its end") }
    case .loadFailed:
      guard state == .opening, lastError != nil else { throw fail("load_failed without an error") }
    case .stopped, .replaced, .cleanup, .moved: break
    }
  }

  // MARK: Places

  /// Whether nothing is left to be heard.
  private var isAtEnd: Bool {
    guard let position else { return true }
    let end = min(
      play.endMilliseconds ?? .max, requests.packetCount(ofTrack: track) * Self.packetMilliseconds)
    return position + Self.packetMilliseconds > end
  }

  mutating func comparePosition(_ place: Int) throws(Violation) {
    if mayHaveOwner {
      position = place
      return
    }
    // A loop that is paused at its end comes to its beginning without a word: the resume tells.
    if state == .paused, play.loop, isAtEnd, place == roundedDown(play.startMilliseconds) { return }
    if let position, position != place { throw fail("\(place) ms is not where it is") }
  }

  private func require(_ states: State..., event: EngineEvent) throws(Violation) {
    guard states.contains(state) else { throw fail("\(event.body.name) while \(state)") }
  }

  private func roundedDown(_ milliseconds: Int) -> Int {
    milliseconds / Self.packetMilliseconds * Self.packetMilliseconds
  }
}
