import ServiceSupport
import WireProtocol

/// Who asked for something, and how the answer reaches them.
package struct Inquiry: Sendable {
  enum Requester: Sendable {
    /// The router on a connection.
    case router(RouterConnection.ID)
    /// One HTTP request.
    case closure(@Sendable (EngineEvent) -> Void)
  }

  let requester: Requester
  package let requestID: String?
  /// For whom: nil for one without a name.
  let client: String?
  let askedNanoseconds = MonotonicClock.nowNanoseconds

  init(_ requester: Requester, requestID: String? = nil, client: String? = nil) {
    self.requester = requester
    self.requestID = requestID
    self.client = client
  }

  package init(router: RouterConnection.ID, requestID: String? = nil) {
    self.init(.router(router), requestID: requestID)
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
  /// Of an endless score: the voices that are silent, where it was ever asked for.
  var muted: [Score.Role]?
  var track: TrackDetails?
  /// The `play` that waits for `ready`.
  var playInquiry: Inquiry?
  /// A change of timeline under way.
  var pending: PendingMove?
  /// A change of what is heard that waits for its packet.
  var cut: PendingCut?
  /// After a cut.
  var joint = JointPackets()
  /// What follows when this track has finished.
  var next: PreparedTrack?
  var history: SessionHistory
  /// Which of the schedule's phases it is due in, and the tick of its next packet; nil while not streaming.
  var nextTick: UInt64?
  /// The restart of the schedule that its router has been told of last.
  var rebaseCount = 0
  /// Where the last packet before a pause ends: none comes before.
  var earliestTick: UInt64 = 0
  /// Since when nothing was under the cursor at its deadline.
  var bufferingSinceNanoseconds: UInt64?
  var pausedSinceNanoseconds: UInt64?
  var isStuckAnnounced = false

  init(_ play: NewPlay) {
    id = play.id
    request = play.request
    source = play.source
    machine = SessionStateMachine(startsPaused: request.paused)
    lease = play.lease
    let timeline = lease.timeline
    cursor = Timeline.Cursor(
      timeline, index: max(0, timeline.packetIndex(atMilliseconds: request.startMilliseconds)))
    volume = request.volume
    playInquiry = play.inquiry
    history = SessionHistory(
      askedNanoseconds: play.inquiry?.askedNanoseconds ?? MonotonicClock.nowNanoseconds,
      journal: timeline.journal)
  }

  /// Since when it is of no use to anybody: paused, or with nothing to send.
  var idleSinceNanoseconds: UInt64? { pausedSinceNanoseconds ?? bufferingSinceNanoseconds }

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
    history.moved(to: lease.timeline.journal)
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
