import WireProtocol

/// One session: a state and a cursor. It belongs to the `SessionDirector`.
final class Session {
  let id: SessionID
  let request: PlayRequest
  let source: MediaSource
  var machine: SessionStateMachine
  /// Who alone is sent its audio; nil for all.
  var owner: SessionOwner?
  /// Keeps the timeline under the cursor alive and produced.
  var lease: TimelineLease
  var cursor: Timeline.Cursor
  /// It waits until another engine stops: nobody but who asked for it is told of it.
  var isStandby: Bool
  /// Where it ends since another engine plays on.
  var handOver: PendingHandOver?
  /// From here on what was sent is one piece with what comes: where the session began, or was moved to.
  private(set) var soundStartMilliseconds = 0
  var volume: Double
  /// The muted voices of an endless score; nil where nothing was ever muted.
  var muted: [Score.Role]?
  var track: TrackDetails?
  /// The `play` that waits for `ready`.
  var pendingPlay: PendingRequest?
  /// A change of timeline under way.
  var pendingMove: PendingMove?
  /// Takes effect with the move, or the transition of a seek, that is under way.
  var pendingVolume: PendingVolume?
  /// A change of what is heard that waits for its packet.
  var transition: PendingTransition?
  /// After a transition.
  var splicePackets = SplicePackets()
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
  /// The last entry of the timeline's metadata that was told.
  var metadataNumber = 0
  var nextMetadataIndex = 0

  init(_ play: NewPlay, owner: SessionOwner?, now: UInt64) {
    id = play.id
    request = play.request
    source = play.source
    isStandby = play.standbyMilliseconds != nil
    machine = SessionStateMachine(startsPaused: request.paused || isStandby)
    self.owner = owner
    lease = play.lease
    let timeline = lease.timeline
    let index = timeline.startIndex(
      atMilliseconds: play.standbyMilliseconds ?? request.startMilliseconds)
    cursor = Timeline.Cursor(timeline, index: index, origin: timeline.isLive ? index : 0)
    soundStartMilliseconds = cursor.positionMilliseconds
    volume = request.volume
    pendingPlay = play.pendingRequest
    history = SessionHistory(
      askedNanoseconds: play.pendingRequest?.askedNanoseconds ?? now,
      journal: timeline.journal)
  }

  /// Since when nobody hears anything of it: paused, or with nothing to send.
  /// A station that is silent for a while comes back.
  var idleSinceNanoseconds: UInt64? {
    pausedSinceNanoseconds ?? (cursor.timeline.isLive ? nil : bufferingSinceNanoseconds)
  }

  var targetVolume: Double { pendingVolume?.volume ?? volume }

  func key(startMilliseconds: Int, volume: Double) -> TrackKey {
    TrackKey(
      source: source, startMilliseconds: startMilliseconds, volume: volume,
      bitrateKilobits: request.bitrateKilobits)
  }

  /// What is live continues where it is by now.
  func joinLiveSource() {
    guard cursor.timeline.isLive else { return }
    move(to: cursor.timeline.startIndex(atMilliseconds: 0))
  }

  /// Puts the cursor on another packet of its timeline.
  func move(to index: Int) {
    cursor.move(to: index)
    soundStartMilliseconds = cursor.positionMilliseconds
  }

  /// Puts the cursor on another timeline.
  ///
  /// - Parameter positionMilliseconds: nil for where it is, at another volume.
  func move(to lease: TimelineLease, positionMilliseconds: Int?) {
    self.lease = lease
    let position = positionMilliseconds ?? cursor.positionMilliseconds
    cursor = Timeline.Cursor(
      lease.timeline, index: max(0, lease.timeline.packetIndex(atMilliseconds: position)))
    if positionMilliseconds != nil { soundStartMilliseconds = cursor.positionMilliseconds }
    let playing = track
    track = lease.timeline.track ?? track
    (metadataNumber, nextMetadataIndex) = (0, 0)
    if lease.timeline.isLive, let playing { track?.metadata = playing.metadata }
    history.moved(to: lease.timeline.journal)
  }
}

/// The packet before which a session ends.
struct PendingHandOver {
  let positionMilliseconds: Int
  let pendingRequest: PendingRequest
}

/// A volume that takes effect where a session comes to another place.
struct PendingVolume {
  let volume: Double
  let pendingRequest: PendingRequest?
}

/// A change of timeline that waits until the other timeline has what is needed.
struct PendingMove {
  enum Purpose {
    case seek(positionMilliseconds: Int)
    /// Splices at whatever packet is next once the other timeline has it.
    case volume(Double)
    /// The track repeats, and its start is not on this timeline.
    case loop
  }

  let number: UInt64
  let purpose: Purpose
  /// Nobody waits for the answer of a loop.
  let pendingRequest: PendingRequest?
  /// When a volume was asked for that a round of its loop was too short for; nil for all else.
  var askedNanoseconds: UInt64?
  /// Nil until the store has given it.
  var lease: TimelineLease?
}
