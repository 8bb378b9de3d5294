import NIOCore
import ServiceSupport
import WireProtocol

/// One session as the Router knows it: its playback, where each packet belongs, who listens. The packet path needs
/// the counter and the outlets, and nothing of the playback. Confined to the data plane's loop.
package final class RoutedSession {
  package let id: SessionID
  /// Changed by steps of the data plane (`DataPlane.run`), which performs the actions that they return.
  package var playback: Playback {
    didSet {
      guard playback.plan.queueRevision != accountedRevision else { return }
      keptEncodedQueue = nil
      accounts.update(self)
      playback.plan.queue.historyByteLimit = accounts.historyByteLimit(of: creator)
      accountedRevision = playback.plan.queueRevision
    }
  }
  private var accountedRevision = 0
  /// While somebody listens, to whom it may be sent again.
  private var keptEncodedQueue: EncodedQueue?
  /// What waits for the queue to be read, in order; nil where nobody reads it.
  var deferred: [DeferredStep]?
  /// Who plays it, or is to: an engine that is out of reach keeps it until it is known to be gone.
  var engine: EngineNumber {
    get { route.pointee.engine }
    set { route.pointee.engine = newValue }
  }
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
  /// No more kept, by that name there may be another.
  var isForgotten = false
  /// When it was last changed, by the Router's running time.
  var touchedMilliseconds = 0

  private(set) var listenerCount = 0
  /// In memory of its own: see `PacketPath`.
  let route: UnsafeMutablePointer<PacketRoute>
  /// What was asked of the engine for those who join.
  var bursts: [BurstRequest] = []
  private var oggListeners: [OggListener] = []
  private(set) var webSockets: [ObjectIdentifier: WebSocketListener] = [:]

  /// - Parameter engine: who plays it before any other does.
  init(
    id: SessionID, creator: ClientID = .router, accounts: SessionAccounts = SessionAccounts(),
    engine: EngineNumber = .none
  ) {
    self.id = id
    self.creator = creator
    self.accounts = accounts
    playback = Playback(id: id)
    route = .allocate(capacity: 1)
    route.initialize(to: PacketRoute(engine: engine, session: self))
  }

  /// A session that is accounted to nobody.
  package convenience init(id: SessionID) {
    self.init(id: id, accounts: SessionAccounts())
  }

  deinit {
    route.pointee.opus.deallocate()
    route.pointee.timed.deallocate()
    route.pointee.groups.deallocate()
    route.deinitialize(count: 1)
    route.deallocate()
  }

  var queue: TrackQueue { playback.plan.queue }
  var storedRows: StoredRows? { playback.plan.storedRows }
  var volume: Double { playback.plan.volume }
  var state: SessionSnapshot.State { playback.state }
  var isIdle: Bool { playback.isIdle }
  var isAtRest: Bool { playback.isAtRest }
  /// Whether nothing is lost where it is forgotten.
  var isUnused: Bool { isAbandoned && hasNothingToPersist }
  var isAbandoned: Bool { isAtRest && listenerCount == 0 && deferred == nil && !playback.isHeld }
  var hasNothingToPersist: Bool { storedRows == nil && queue.isUnmodified && volume == 1 }
  var title: String? { playback.reported.title }
  /// As stations say it: "artist - title".
  var streamTitle: String? {
    guard let title else { return nil }
    return playback.reported.artist.map { "\($0) - \(title)" } ?? title
  }
  /// What plays is none of the queue's.
  var playsScore: Bool { playback.playsScore }
  var playsEndlessScore: Bool { playsScore && playback.reported.live == true }
  /// `hello` names a session without its chapters, so that they must be asked for.
  var lacksChapters: Bool {
    (state == .streaming || state == .paused) && playback.reported.chapters == nil
  }

  /// The session object, with the place of the next packet.
  var snapshot: SessionSnapshot {
    var snapshot = playback.snapshot(countedMilliseconds: countedMilliseconds)
    if snapshot.state == .streaming { snapshot.dueNanoseconds = route.pointee.counter.next.dueNanoseconds }
    return snapshot
  }

  /// The position of the next packet while the session streams.
  var countedMilliseconds: Int { Int(route.pointee.counter.next.positionMilliseconds) }

  /// The number of the next packet.
  var nextSequence: UInt32 { route.pointee.counter.next.sequence }

  // MARK: Packets

  /// Gives players a packet that its WebSockets have been sent.
  func giveToPlayers(_ audio: UnsafeRawBufferPointer, _ now: UInt64) {
    let packet = ByteBuffer(bytes: audio)
    for listener in oggListeners where listener.hears {
      listener.take(packet, sharedBy: oggListeners.count, now: now)
    }
  }

  /// Follows the events that say where packets belong.
  func place(_ body: EngineEvent.Body) {
    switch body {
    case .playing(let anchor), .resumed(let anchor), .rebased(let anchor):
      route.pointee.counter.anchor(
        positionMilliseconds: anchor.positionMilliseconds, dueNanoseconds: anchor.dueNanoseconds)
    case .seeked(let position, let due):
      route.pointee.counter.anchor(positionMilliseconds: position, dueNanoseconds: due)
    case .dropped(let count): route.pointee.counter.skip(count)
    // The count stays at a status: packets may be on their way that the answer has counted already.
    default: break
    }
  }

  /// Takes the engine's word for where the next packet belongs.
  func place(_ snapshot: SessionSnapshot) {
    route.pointee.counter.anchor(
      positionMilliseconds: snapshot.positionMilliseconds ?? 0, dueNanoseconds: snapshot.dueNanoseconds)
  }

  // MARK: Listeners

  func add(_ listener: WebSocketListener) {
    listenerCount += 1
    webSockets[ObjectIdentifier(listener)] = listener
  }

  /// From the next packet on it hears what the others hear.
  func hear(_ listener: WebSocketListener) {
    let port = listener.outlet.port
    switch (listener.request.subprotocol, listener.request.packetsPerMessage) {
    case (.opus, _): route.pointee.opus.append(port)
    case (.timed, 1): route.pointee.timed.append(port)
    case (.timed, let count): route.pointee.groups.add(port, packetsPerMessage: count)
    }
  }

  /// - Returns: whether it was here.
  func remove(_ listener: WebSocketListener) -> Bool {
    guard webSockets.removeValue(forKey: ObjectIdentifier(listener)) != nil else { return false }
    listenerCount -= 1
    if listenerCount == 0 { keptEncodedQueue = nil }
    let port = listener.outlet.port
    switch (listener.request.subprotocol, listener.request.packetsPerMessage) {
    case (.opus, _): route.pointee.opus.remove(port)
    case (.timed, 1): route.pointee.timed.remove(port)
    case (.timed, let count): route.pointee.groups.remove(port, packetsPerMessage: count)
    }
    return true
  }

  func add(_ listener: OggListener) {
    listenerCount += 1
    oggListeners.append(listener)
    route.pointee.playerCount += 1
  }

  func remove(_ listener: OggListener) -> Bool {
    guard let index = oggListeners.firstIndex(where: { $0 === listener }) else { return false }
    listenerCount -= 1
    if listenerCount == 0 { keptEncodedQueue = nil }
    oggListeners.remove(at: index)
    route.pointee.playerCount -= 1
    return true
  }

  /// What each listener may do, and for whom.
  var grants: [Grant] { webSockets.values.map { $0.request.grant } + oggListeners.map(\.grant) }

  /// What its listeners have not taken yet.
  var waitingByteCount: Int {
    webSockets.values.reduce(0) { $0 + $1.outlet.waitingByteCount }
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
    let encoded = EncodedQueue(playback.queueView())
    if listenerCount > 0 { keptEncodedQueue = encoded }
    return encoded
  }

  // MARK: Persistence

  /// The session's own row.
  var record: SessionRecord {
    var record = playback.record(countedMilliseconds: countedMilliseconds)
    record.touchedMilliseconds = touchedMilliseconds
    record.creator = creator
    return record
  }

  /// Is as it was kept, with the rows of its queue still on disk.
  func restore(_ record: SessionRecord) {
    touchedMilliseconds = record.touchedMilliseconds
    playback.restore(record)
    route.pointee.counter.anchor(positionMilliseconds: record.positionMilliseconds, dueNanoseconds: nil)
  }
}
