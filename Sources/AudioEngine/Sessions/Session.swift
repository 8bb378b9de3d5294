import WireProtocol

/// Who asked for something, and how the answer reaches them.
package struct Inquiry: Sendable {
  enum Asker: Sendable {
    /// The router on a connection.
    case router(RouterConnection.ID)
    /// One HTTP request.
    case closure(@Sendable (EngineEvent) -> Void)
  }

  let asker: Asker
  let requestID: String?
  let askedNanoseconds = MonotonicClock.nowNanoseconds

  init(_ asker: Asker, requestID: String? = nil) {
    self.asker = asker
    self.requestID = requestID
  }
}

/// One session: a state and a cursor. Lives on the pacer's thread.
final class Session {
  let id: SessionID
  let request: PlayRequest
  let source: MediaSource
  var machine: SessionStateMachine
  /// Keeps the timeline under the cursor alive and produced.
  var lease: TimelineLease
  var cursor: Timeline.Cursor
  var volume: Double
  var track: TrackDetails?
  /// The `play` that waits for `ready`.
  var playInquiry: Inquiry?
  /// A change of timeline under way.
  var pending: PendingMove?
  /// Which of the schedule's phases it is due in, and the tick of its next packet; nil while not streaming.
  var nextTick: UInt64?
  /// Since when nothing was under the cursor at its deadline.
  var bufferingSinceNanoseconds: UInt64?
  var isStuckAnnounced = false

  init(id: SessionID, request: PlayRequest, source: MediaSource, lease: TimelineLease, inquiry: Inquiry) {
    self.id = id
    self.request = request
    self.source = source
    machine = SessionStateMachine(startsPaused: request.paused)
    self.lease = lease
    cursor = Timeline.Cursor(
      lease.timeline, index: max(0, lease.timeline.packetIndex(atMilliseconds: request.startMilliseconds)))
    volume = request.volume
    playInquiry = inquiry
  }

  func key(startMilliseconds: Int, volume: Double) -> TrackKey {
    TrackKey(
      source: source, startMilliseconds: startMilliseconds, volume: volume,
      bitrateKilobits: request.bitrateKilobits)
  }

  /// Puts the cursor on another timeline.
  func move(to lease: TimelineLease, positionMilliseconds: Int) {
    self.lease = lease
    cursor = Timeline.Cursor(
      lease.timeline, index: max(0, lease.timeline.packetIndex(atMilliseconds: positionMilliseconds)))
    track = lease.timeline.track ?? track
  }
}

/// A change of timeline that waits until the other timeline has what is needed.
struct PendingMove {
  enum Purpose {
    case seek(positionMilliseconds: Int)
    /// Splices at whatever packet is next once the other timeline has it.
    case volume(Double)
    /// The track begins anew, and its start is not on this timeline.
    case loop
  }

  let number: UInt64
  let purpose: Purpose
  /// Nobody waits for the answer of a loop.
  let inquiry: Inquiry?
  /// Nil until the store has given it.
  var lease: TimelineLease?
}
