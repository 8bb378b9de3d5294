import NIOCore
import WireProtocol

/// One session as the Router knows it: what plays, where each packet belongs, who listens, what comes next.
/// Confined to the data plane's loop.
final class RoutedSession {
  let id: SessionID
  var queue = TrackQueue()
  /// The last play sent, until the engine has begun with it: an end that is reported meanwhile is of what
  /// played before, and does not let the queue go on.
  var startingRequestID: String?

  /// It played, and the engine that played it is gone: it is to be played again.
  var isLost = false
  /// Why the track that was being opened is about to end: the engine can carry no more now.
  var overload: ErrorReport?
  /// Since when nobody hears it and nothing plays.
  var abandonedSince: NIODeadline?

  private(set) var listenerCount = 0
  private var playback: SessionSnapshot
  private var counter = PacketCounter()
  private var ring = LateJoinRing()
  /// The session's level outlives its tracks.
  private(set) var volume = 1.0
  /// Asked for while a track was being opened.
  private var wantedVolume: Double?
  private var requestedPlay: PlayRequest?
  private var opusOutlets: [FrameOutlet] = []
  private var timedOutlets: [FrameOutlet] = []
  private var oggListeners: [OggListener] = []
  private(set) var webSockets: [ObjectIdentifier: WebSocketListener] = [:]

  init(id: SessionID) {
    self.id = id
    playback = SessionSnapshot(sessionID: id, state: .idle)
  }

  var state: SessionSnapshot.State { playback.state }
  var isIdle: Bool { playback.state == .idle && startingRequestID == nil }
  var isUnused: Bool { isIdle && listenerCount == 0 && queue.isEmpty }
  var isAbandoned: Bool { isIdle && listenerCount == 0 }
  var title: String? { playback.title }
  /// `hello` names a session without its chapters, so that they must be asked for.
  var lacksChapters: Bool {
    (playback.state == .streaming || playback.state == .paused) && playback.chapters == nil
  }

  /// The session object, with the place of the next packet.
  var snapshot: SessionSnapshot {
    var snapshot = playback
    snapshot.volume = snapshot.volume ?? volume
    if snapshot.state == .streaming {
      snapshot.positionMilliseconds = Int(counter.next.positionMilliseconds)
      snapshot.dueNanoseconds = counter.next.dueNanoseconds
    }
    return snapshot
  }

  // MARK: Packets

  /// Gives one packet to everyone who listens. Each form of it is built once.
  ///
  /// - Returns: how many listeners it was for.
  func deliver(_ audio: ArraySlice<UInt8>, to store: SessionStore) {
    let place = counter.take()
    ring.append(place, audio)
    if !timedOutlets.isEmpty {
      let frame = WebSocketFrames.timed(place, audio)
      for outlet in timedOutlets { outlet.sendAudio(frame, flushedBy: store) }
    }
    if !opusOutlets.isEmpty {
      let frame = WebSocketFrames.opus(audio)
      for outlet in opusOutlets { outlet.sendAudio(frame, flushedBy: store) }
    }
    if !oggListeners.isEmpty {
      let packet = ByteBuffer(bytes: audio)
      let now = MonotonicClock.nowNanoseconds
      for listener in oggListeners { listener.take(packet, now: now) }
    }
  }

  /// The packets of the last `milliseconds`, where they are what the session sounds like now.
  func recentPackets(milliseconds: Int) -> (ring: LateJoinRing, packetCount: Int)? {
    guard playback.state == .streaming, milliseconds > 0 else { return nil }
    return (ring, milliseconds / WireLimits.packetDurationMilliseconds)
  }

  /// The engine is away: what was heard last is no longer what plays.
  func engineWentAway() {
    ring.removeAll()
    playback.positionMilliseconds = snapshot.positionMilliseconds
    startingRequestID = nil
  }

  // MARK: Listeners

  func add(_ listener: WebSocketListener) {
    listenerCount += 1
    webSockets[ObjectIdentifier(listener)] = listener
    switch listener.request.subprotocol {
    case .opus: opusOutlets.append(listener.outlet)
    case .timed: timedOutlets.append(listener.outlet)
    }
  }

  /// - Returns: whether it was here.
  func remove(_ listener: WebSocketListener) -> Bool {
    guard webSockets.removeValue(forKey: ObjectIdentifier(listener)) != nil else { return false }
    listenerCount -= 1
    switch listener.request.subprotocol {
    case .opus: opusOutlets.removeAll { $0 === listener.outlet }
    case .timed: timedOutlets.removeAll { $0 === listener.outlet }
    }
    return true
  }

  func add(_ listener: OggListener) {
    listenerCount += 1
    oggListeners.append(listener)
  }

  func remove(_ listener: OggListener) -> Bool {
    guard let index = oggListeners.firstIndex(where: { $0 === listener }) else { return false }
    listenerCount -= 1
    oggListeners.remove(at: index)
    return true
  }

  /// Sends one text message to every WebSocket but one.
  func broadcast(_ frame: ByteBuffer, except asker: WebSocketListener? = nil) {
    for listener in webSockets.values where listener !== asker { listener.outlet.sendText(frame) }
  }

  // MARK: Playback

  /// Keeps a level for the next track, or for the one that is being opened.
  ///
  /// - Returns: false where one plays, whose level the engine changes.
  func keepVolume(_ level: Double) -> Bool {
    guard playback.state == .idle || playback.state == .extracting else { return false }
    if playback.state == .extracting || startingRequestID != nil { wantedVolume = level }
    volume = level
    return true
  }

  /// The level the engine is yet to be asked for, once.
  func takeWantedVolume() -> Double? {
    defer { wantedVolume = nil }
    return wantedVolume
  }

  func takeOverload() -> ErrorReport? {
    defer { overload = nil }
    return overload
  }

  /// Remembers what a play of ours asks for, which the engine's events do not repeat.
  func asked(toPlay request: PlayRequest, requestID: String) {
    requestedPlay = request
    startingRequestID = requestID
  }

  /// Takes the engine's word for what plays.
  func adopt(_ snapshot: SessionSnapshot) {
    counter.anchor(
      positionMilliseconds: snapshot.positionMilliseconds ?? 0, dueNanoseconds: snapshot.dueNanoseconds)
    describe(snapshot)
  }

  /// Follows the session's events.
  func apply(_ body: EngineEvent.Body) {
    switch body {
    case .extracting(let url): began(url)
    case .ready(let ready): opened(ready)
    case .playing(let anchor), .resumed(let anchor), .rebased(let anchor):
      playback.state = .streaming
      playback.buffering = false
      counter.anchor(
        positionMilliseconds: anchor.positionMilliseconds, dueNanoseconds: anchor.dueNanoseconds)
    case .seeked(let position, let due):
      ring.removeAll()
      playback.buffering = false
      playback.positionMilliseconds = position
      counter.anchor(positionMilliseconds: position, dueNanoseconds: due)
    case .paused(let position):
      playback.state = .paused
      playback.positionMilliseconds = position
    case .buffering: playback.buffering = true
    case .dropped(let count): counter.skip(count)
    // The count stays: packets may be on their way that the answer has counted already.
    case .status(let snapshot): describe(snapshot)
    case .ended:
      ring.removeAll()
      isLost = false
      playback = SessionSnapshot(sessionID: id, state: .idle)
    case .hello, .prepared, .stuck, .media, .artwork, .resolved, .why, .error: break
    }
  }

  /// What the engine must be asked for so that the session goes on where it was; nil while idle.
  var continuation: PlayRequest? {
    guard playback.state != .idle, let url = playback.url else { return nil }
    return PlayRequest(
      url: url, startMilliseconds: continuationMilliseconds(of: url), volume: volume,
      loop: playback.loop ?? false, paused: playback.state == .paused,
      bitrateKilobits: playback.bitrateKilobits)
  }

  private func continuationMilliseconds(of url: String) -> Int {
    let position = snapshot.positionMilliseconds ?? 0
    guard let duration = playback.durationMilliseconds, duration > 0 else {
      // Without a duration it is a live stream, which has no place to go back to; files always have one.
      return url.lowercased().hasPrefix("media:") ? position : 0
    }
    // A loop is counted on past the end of the track.
    return playback.loop == true ? position % duration : min(position, duration)
  }

  private func describe(_ snapshot: SessionSnapshot) {
    let chapters = snapshot.url == playback.url ? playback.chapters : nil
    playback = snapshot
    playback.chapters = snapshot.chapters ?? chapters
    volume = snapshot.volume ?? volume
  }

  private func began(_ url: String) {
    startingRequestID = nil
    isLost = false
    ring.removeAll()
    playback = SessionSnapshot(sessionID: id, state: .extracting)
    playback.url = url
    guard let request = requestedPlay, request.url == url else { return }
    requestedPlay = nil
    volume = request.volume
    playback.volume = request.volume
    playback.loop = request.loop
    playback.bitrateKilobits = request.bitrateKilobits
    playback.positionMilliseconds = request.startMilliseconds
  }

  private func opened(_ ready: Ready) {
    playback.url = ready.url
    playback.title = ready.title
    playback.artist = ready.artist
    playback.album = ready.album
    playback.artwork = ready.artwork
    playback.live = ready.live
    playback.chapters = ready.chapters ?? []
    playback.volume = ready.volume ?? playback.volume
    playback.loop = ready.loop ?? playback.loop
    volume = wantedVolume ?? ready.volume ?? volume
    playback.durationMilliseconds = ready.durationMilliseconds
    playback.codec = ready.codec
    playback.passthrough = ready.passthrough
  }
}
