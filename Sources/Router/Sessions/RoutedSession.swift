import NIOCore
import ServiceSupport
import WireProtocol

/// One session as the Router knows it: what plays, where each packet belongs, who listens, what comes next.
/// Confined to the data plane's loop.
final class RoutedSession {
  let id: SessionID
  /// Without its rows where those are on disk alone.
  var queue = TrackQueue() {
    didSet {
      keptEncodedQueue = nil
      accounts.update(self)
      queue.historyByteLimit = accounts.historyByteLimit(of: creator)
    }
  }
  /// While somebody listens, to whom it may be sent again.
  private var keptEncodedQueue: EncodedQueue?
  /// What of the queue is on disk alone; nil where all of it is in memory.
  var storedRows: StoredRows? {
    didSet {
      keptEncodedQueue = nil
      accounts.update(self)
    }
  }
  /// What waits for the queue to be read, in order; nil where nobody reads it.
  var deferred: [DeferredStep]?
  /// When its queue was needed last.
  var usedAt = NIODeadline.now()
  /// Who has made it, and whom its queue is accounted to.
  var creator: ClientID {
    willSet { accounts.remove(self) }
    didSet { accounts.update(self) }
  }
  /// What it is accounted for by now.
  var accounted = SessionAccounts.Bytes()
  let accounts: SessionAccounts
  /// The last play asked for, until the engine has begun with it: an end that is reported meanwhile is of what
  /// played before, and does not let the queue go on.
  var starting: StartingPlay?
  /// What the engine will go on to by itself.
  var prepared: PreparedPlay?
  /// The track has finished, and the engine is about to say that it has gone on to what was prepared.
  var isAwaitingPrepared = false
  /// The last plays that the engine may begin though they are not to be heard any more.
  var withdrawnTags: [String] = []
  /// A stop is on its way: what is asked for now comes after it.
  var isStopping = false
  /// What is to play and could not be asked for, or was refused for now. It is asked for as soon as it can be.
  var owed: PlayRequest?

  /// It played, and the engine that played it is gone: it is to be played again.
  var isLost = false
  /// Why the track that was being opened is about to end: the engine can carry no more now.
  var overload: ErrorReport?
  /// A client's play of it waits until its address may be tried (`DataPlane.heldPlays`).
  var isHeld = false
  /// No more kept, by that name there may be another.
  var isForgotten = false
  /// When it was last changed, by the Router's running time.
  var touchedMilliseconds = 0

  private(set) var listenerCount = 0
  private(set) var playback: SessionSnapshot
  private var counter = PacketCounter()
  var ring = LateJoinRing()
  /// What was built for one that joined, for all who join before the next packet.
  var keptBurst: KeptBurst?
  /// The session's level outlives its tracks.
  var volume = 1.0
  /// Asked for while a track was being opened.
  var wantedVolume: Double?
  /// What the engine's events do not repeat of the play that began last.
  private(set) var beganWith: PlayRequest?
  private var opusOutlets: [FrameOutlet] = []
  private var timedOutlets: [FrameOutlet] = []
  private var oggListeners: [OggListener] = []
  private(set) var webSockets: [ObjectIdentifier: WebSocketListener] = [:]

  init(id: SessionID, creator: ClientID = .router, accounts: SessionAccounts = SessionAccounts()) {
    self.id = id
    self.creator = creator
    self.accounts = accounts
    playback = SessionSnapshot(sessionID: id, state: .idle)
  }

  var state: SessionSnapshot.State { playback.state }
  var isIdle: Bool {
    isStopping || (playback.state == .idle && starting == nil && owed == nil && !isAwaitingPrepared)
  }
  /// Whether nothing is lost where it is forgotten.
  var isUnused: Bool { isAbandoned && keepsNothing }
  var isAbandoned: Bool { isIdle && listenerCount == 0 && deferred == nil && !isHeld }
  var keepsNothing: Bool { storedRows == nil && queue.isPristine && volume == 1 }
  var title: String? { playback.title }
  /// What plays is none of the queue's.
  var playsScore: Bool { playback.state != .idle && playback.url == PlayRequest.scoreURL }
  var playsEndlessScore: Bool { playsScore && playback.live == true }
  /// `hello` names a session without its chapters, so that they must be asked for.
  var lacksChapters: Bool {
    (playback.state == .streaming || playback.state == .paused) && playback.chapters == nil
  }

  /// The session object, with the place of the next packet.
  var snapshot: SessionSnapshot {
    var snapshot = playback
    snapshot.tag = nil
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
    store.statistics.countLateness(dueNanoseconds: place.dueNanoseconds)
    ring.append(place, audio) { byteCount in accounts.hasLateJoinRoom(for: byteCount, of: creator) }
    if ring.byteCount != accounted.lateJoin { accounts.update(self) }
    if keptBurst != nil { keptBurst = nil }
    if !timedOutlets.isEmpty {
      let frame = WebSocketFrames.timed(place, audio)
      for outlet in timedOutlets { outlet.sendAudio(frame, sharedBy: timedOutlets.count, flushedBy: store) }
    }
    if !opusOutlets.isEmpty {
      let frame = WebSocketFrames.opus(audio)
      for outlet in opusOutlets { outlet.sendAudio(frame, sharedBy: opusOutlets.count, flushedBy: store) }
    }
    if !oggListeners.isEmpty {
      let packet = ByteBuffer(bytes: audio)
      let now = MonotonicClock.nowNanoseconds
      for listener in oggListeners { listener.take(packet, sharedBy: oggListeners.count, now: now) }
    }
  }

  /// The engine is away: what was heard last is no longer what plays.
  func engineWentAway() {
    forgetSound()
    playback.positionMilliseconds = snapshot.positionMilliseconds
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
    if listenerCount == 0 { keptEncodedQueue = nil }
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
    if listenerCount == 0 { keptEncodedQueue = nil }
    oggListeners.remove(at: index)
    return true
  }

  /// What each listener may do, and for whom.
  var grants: [Grant] { webSockets.values.map { $0.request.grant } + oggListeners.map(\.grant) }

  /// What its listeners have not taken yet.
  var waitingByteCount: Int {
    (opusOutlets + timedOutlets).reduce(0) { $0 + $1.waitingByteCount }
      + oggListeners.reduce(0) { $0 + $1.waitingByteCount }
  }

  /// Sends one text message to every WebSocket but one.
  func broadcast(_ frame: ByteBuffer, except requester: WebSocketListener? = nil) {
    broadcast(TextMessage(frame, sharedBy: listenerCount), except: requester)
  }

  func broadcast(_ message: TextMessage, except requester: WebSocketListener? = nil) {
    for listener in webSockets.values where listener !== requester { listener.outlet.sendText(message) }
  }

  /// The queue's first page as it is now.
  var encodedQueue: EncodedQueue {
    if let keptEncodedQueue { return keptEncodedQueue }
    let encoded = EncodedQueue(queueView())
    if listenerCount > 0 { keptEncodedQueue = encoded }
    return encoded
  }

  // MARK: Playback

  /// Whether a level is for the next track, or for the one that is being opened: of one that plays, the engine changes
  /// it.
  var canKeepVolume: Bool { playback.state == .idle || playback.state == .extracting }

  func keepVolume(_ level: Double) {
    if playback.state == .extracting || starting != nil { wantedVolume = level }
    volume = level
  }

  /// Plays again what it played before its end, which could not be written.
  func takeBack(_ playback: SessionSnapshot, isLost: Bool) {
    self.playback = playback
    self.isLost = isLost
  }

  func withdraw(_ tag: String?) {
    if let tag { withdrawnTags = withdrawnTags.suffix(3) + [tag] }
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

  /// Is as it was kept, with the rows of its queue still on disk.
  func restore(_ record: SessionRecord) {
    queue = record.queue
    storedRows = record.rows.isEmpty ? nil : record.rows
    volume = record.volume
    touchedMilliseconds = record.touchedMilliseconds
    prepared = record.prepared
    guard let request = record.playing else { return }
    guard record.hasBegun else {
      owed = request
      return
    }
    beganWith = request
    playback.state = request.paused ? .paused : .streaming
    playback.url = request.url
    playback.tag = request.tag
    playback.title = queue.current?.track.title
    playback.durationMilliseconds = queue.current?.track.durationMilliseconds
    playback.loop = request.loop
    playback.bitrateKilobits = request.bitrateKilobits
    playback.positionMilliseconds = record.positionMilliseconds
    counter.anchor(positionMilliseconds: record.positionMilliseconds, dueNanoseconds: nil)
  }

  /// Whether that is what plays as far as is known.
  func plays(_ snapshot: SessionSnapshot) -> Bool {
    playback.state != .idle && playback.tag == snapshot.tag && playback.url == snapshot.url
  }

  /// Takes the engine's word for what plays.
  func adopt(_ snapshot: SessionSnapshot) {
    beganWith = play(named: snapshot.tag)
    counter.anchor(
      positionMilliseconds: snapshot.positionMilliseconds ?? 0, dueNanoseconds: snapshot.dueNanoseconds)
    describe(snapshot)
  }

  /// Follows the session's events.
  func apply(_ body: EngineEvent.Body) {
    switch body {
    case .extracting(let url, let tag): began(url, tag)
    case .ready(let ready): opened(ready)
    case .playing(let anchor), .resumed(let anchor), .rebased(let anchor):
      playback.state = .streaming
      playback.buffering = false
      counter.anchor(
        positionMilliseconds: anchor.positionMilliseconds, dueNanoseconds: anchor.dueNanoseconds)
    case .seeked(let position, let due):
      forgetSound()
      playback.buffering = false
      playback.positionMilliseconds = position
      counter.anchor(positionMilliseconds: position, dueNanoseconds: due)
    case .paused(let position):
      playback.state = .paused
      playback.buffering = false
      playback.positionMilliseconds = position
    case .buffering: playback.buffering = true
    case .dropped(let count): counter.skip(count)
    // The count stays: packets may be on their way that the answer has counted already.
    case .status(let snapshot): describe(snapshot)
    case .ended:
      forgetSound()
      isLost = false
      playback = SessionSnapshot(sessionID: id, state: .idle)
    case .muted(let roles): playback.muted = roles
    case .hello, .prepared, .stuck, .media, .artwork, .resolved, .why, .error, .performing, .rendered: break
    }
  }

  private func describe(_ snapshot: SessionSnapshot) {
    let chapters = snapshot.url == playback.url ? playback.chapters : nil
    playback = snapshot
    playback.chapters = snapshot.chapters ?? chapters
    volume = snapshot.volume ?? volume
  }

  private func began(_ url: String, _ tag: String?) {
    isLost = false
    forgetSound()
    playback = SessionSnapshot(sessionID: id, state: .extracting)
    playback.url = url
    playback.tag = tag
    beganWith = play(named: tag)
    guard let request = beganWith else { return }
    volume = request.volume
    playback.volume = request.volume
    playback.loop = request.loop
    playback.bitrateKilobits = request.bitrateKilobits
    playback.positionMilliseconds = request.startMilliseconds
  }

  /// The play of that tag, where it is one of ours.
  private func play(named tag: String?) -> PlayRequest? {
    guard let tag else { return nil }
    let plays = [starting?.request, prepared?.request, owed, beganWith]
    return plays.lazy.compactMap(\.self).first { $0.tag == tag }
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
