import Logging
import NIOCore
import ServiceSupport
import WireProtocol

/// The Router's one loop and everything confined to it: the engines' links, the sessions, the WebSockets,
/// and the commands that wait. No lock and no hop between a packet and its listeners
/// (`docs/decisions/0003-router-data-plane-on-one-loop.md`).
final class DataPlane {
  let eventLoop: any EventLoop
  let logger: Logger
  let statistics: RouterStatistics
  let store: SessionStore
  /// What is kept on disk.
  let state: StateWriter
  let budgets: ClientBudgets
  let connectionSlots: ConnectionSlots
  var lookUps = ClientLookUps()
  /// Who waits for a folder's listing. Clients share none, so that nobody waits behind another's.
  var listings: [Listing: [Requester]] = [:]
  /// Names the plays of this start.
  var tags: PlayTags
  /// Who is to be answered when a session's playback says so.
  var requesters: [RequesterID: Requester] = [:]
  var requesterCount = 0
  /// The answers to commands with an idempotency key.
  var idempotency = IdempotencyStore<Requester>()
  /// The addresses that may have crashed the engine.
  var crashes = CrashTracker()
  /// Plays of suspect addresses, until it is their turn to be tried.
  var heldPlays: [SessionID: HeldPlay] = [:]
  let fleet = Fleet()
  /// Sessions on their way from an engine that stops to another.
  var handovers: [SessionID: Handover] = [:]
  var handoverCount = 0
  /// Those that could not be moved a moment ago.
  var unmovable: Set<SessionID> = []
  /// Which sessions are this Router's; nil where it is the only one.
  var homes: (any SessionHomes)?
  /// Whether all engines that there are have said what they play.
  var areEnginesKnown = false
  /// What listeners were told last of the engines.
  var announcedStatus: EngineStatus?

  /// Unique to this start of the Router: its name at NATS, and what request IDs and the tags of plays begin with.
  let id: String

  /// Ends what others do on this loop.
  var onStop: () -> Void = {}
  /// Has the other Routers take over.
  var onDrain: () -> Void = {}
  private(set) lazy var station = Station(plane: self)

  private var oggListeners: [ObjectIdentifier: OggConnection] = [:]
  private var isTickingForOgg = false
  private var isStopped = false
  /// Whether everyone has been told that the Router stops.
  private(set) var isDraining = false
  private var reportedDrops = 0

  struct Listing: Hashable {
    var client: ClientID
    var path: String
  }

  /// One `/listen` player.
  private struct OggConnection {
    var listener: OggListener
    var session: RoutedSession
    var channel: any Channel
  }

  init(
    firstEngine: EngineNumber, stateStore: StateStore, archive: SessionArchive?, saved: SavedState,
    clientLimits: Int, eventLoop: any EventLoop, logger: Logger
  ) {
    self.eventLoop = eventLoop
    self.logger = logger
    statistics = RouterStatistics()
    store = SessionStore(statistics: statistics, firstEngine: firstEngine)
    budgets = ClientBudgets(factor: clientLimits, eventLoop: eventLoop, logger: logger)
    connectionSlots = ConnectionSlots(factor: clientLimits)
    connectionSlots.onFull = { [budgets] address in budgets.note(.connections, address) }
    state = StateWriter(
      store: stateStore, archive: archive, clock: saved.clock, eventLoop: eventLoop, logger: logger)
    id = ClusterSubject.newID(prefix: "r")
    tags = PlayTags(prefix: id)
    crashes.restore(
      saved.crashes, isAlone: firstEngine != .none, now: Self.nowMilliseconds,
      unixMilliseconds: Self.unixMilliseconds)
    for answer in saved.answers { idempotency.restore(answer) }
    for record in saved.sessions { store.restore(record) }
    for (id, unreadable) in Dictionary(grouping: saved.unreadable, by: \.sessionID) {
      report(unreadable, of: id)
    }
    budgets.onTooMuchWaiting = { [weak self] client in self?.giveUpSlowest(of: client) }
    store.onForget = { [state, fleet] session in
      state.forget(session)
      fleet.release(session, to: firstEngine)
    }
    store.requireHome = { [unowned self] id throws(RequestError) in try requireHome(of: id) }
    store.isUnconfirmed = { [state] id in state.holds(id) }
    state.onFailure = { [unowned self] undos in repeatWhatHappened(after: undos) }
    state.onWritten = { [store] sessions in for session in sessions { store.removeIfUnused(session) } }
  }

  func start() {
    for engine in fleet.engines.values { engine.link.start() }
    runHousekeeping()
    checkpoint()
  }

  /// The Router is about to stop: says so to everyone who can be told.
  func drain() {
    guard !isDraining else { return }
    isDraining = true
    let frame = WebSocketFrames.text(JSON.encode(ClosingMessage()))
    for session in store.sessions.values { session.broadcast(frame) }
    onDrain()
  }

  func stop() {
    guard !isStopped else { return }
    isStopped = true
    onStop()
    // What was being opened is not to be held against it if the engine stops too.
    crashes.engineStopped()
    noteCrashes()
    state.savePositions(of: store.sessions.values)
    for engine in fleet.engines.values {
      engine.link.stop()
      failPending(ErrorReport(.engineUnavailable, ClosingMessage.reason, stage: .command), engine)
    }
    for connection in oggListeners.values {
      connection.listener.end()
      // One that does not read would have the others wait.
      eventLoop.assumeIsolated().scheduleTask(in: .seconds(RouterLimits.shutdownGraceSeconds)) {
        connection.channel.close(promise: nil)
      }
    }
  }

  /// Stops, and takes no more to disk than what there is.
  ///
  /// - Returns: fulfilled once that is written, or cannot be.
  func close() -> EventLoopFuture<Void> {
    stop()
    return state.close()
  }

  /// Whether one more may listen.
  func checkRoom(for request: ListenRequest) throws(RequestError) {
    try store.checkRoom(for: request.sessionID)
    try budgets.checkRoomForListener(request.grant)
  }

  // MARK: Ogg listeners

  /// - Returns: the title of what plays, where it is known.
  func add(
    _ listener: OggListener, bufferMilliseconds: Int, channel: any Channel
  ) throws(RequestError) -> String? {
    try budgets.checkRoomForListener(listener.grant)
    let session = try store.add(listener)
    budgets.countListeners(1, of: listener.grant)
    channel.limitKernelUnsent()
    // A player's own buffers are long; what waits here is accounted for.
    try? channel.syncOptions?.setOption(
      .writeBufferWaterMark,
      value: .init(
        low: RouterLimits.oggLowWatermarkByteCount, high: RouterLimits.oggHighWatermarkByteCount))
    listener.hasRoom = { [budgets, client = listener.grant.client] in
      budgets.hasAudioRoom(for: $0, of: client)
    }
    listener.onWaiting = { [budgets, grant = listener.grant] in budgets.countAudio($0, of: grant) }
    oggListeners[ObjectIdentifier(listener)] = OggConnection(
      listener: listener, session: session, channel: channel)
    join(session, milliseconds: bufferMilliseconds) { [weak self, budgets] burst in
      // It may have gone meanwhile.
      guard self?.oggListeners[ObjectIdentifier(listener)] != nil else { return }
      if let burst, budgets.hasAudioRoom(for: burst.audioByteCount, of: listener.grant.client) {
        burst.forEachAudio { listener.takeBurst($0) }
      }
      listener.hears = true
    }
    tickForOgg()
    station.joined(session)
    return session.title
  }

  func remove(_ listener: OggListener) {
    guard let connection = oggListeners.removeValue(forKey: ObjectIdentifier(listener)) else { return }
    store.remove(listener, from: connection.session)
    listener.forget()
    budgets.countListeners(-1, of: listener.grant)
  }

  /// Their streams are over.
  func endPlayers(of session: RoutedSession) {
    for connection in oggListeners.values where connection.session === session { connection.listener.end() }
  }

  private func tickForOgg() {
    guard !isTickingForOgg, !oggListeners.isEmpty, !isStopped else { return }
    isTickingForOgg = true
    let interval = TimeAmount.milliseconds(RouterLimits.oggTickMilliseconds)
    eventLoop.assumeIsolated().scheduleTask(in: interval) { [weak self] in
      guard let self else { return }
      let now = MonotonicClock.nowNanoseconds
      for connection in oggListeners.values { connection.listener.fillSilence(now: now) }
      isTickingForOgg = false
      tickForOgg()
    }
  }

  // MARK: Housekeeping

  private func runHousekeeping() {
    guard !isStopped else { return }
    eventLoop.assumeIsolated().scheduleTask(in: .seconds(1)) { [weak self] in
      guard let self else { return }
      let now = NIODeadline.now()
      let runningMilliseconds = state.clock.milliseconds()
      for session in store.sessions.values {
        for listener in session.webSockets.values { listener.runHousekeeping(now: now) }
        run(session) { $0.prepareNextIfNeeded(&$1) }
        store.removeIfUnused(session)
        store.removeIfAbandoned(session, now: runningMilliseconds)
        unloadIfIdle(session, now: now)
      }
      station.runHousekeeping()
      for connection in oggListeners.values { connection.listener.runHousekeeping() }
      for connection in oggListeners.values where connection.listener.isStuck(now: now) {
        connection.channel.close(promise: nil)
      }
      idempotency.forgetExpired(nowMilliseconds: runningMilliseconds)
      for engine in fleet.engines.values { expirePending(of: engine, now: now) }
      refuseOverdueLookUps(now: now)
      budgets.forgetIdle()
      watchTrials()
      reportDrops()
      runHousekeeping()
    }
  }

  private func checkpoint() {
    guard !isStopped else { return }
    let interval = TimeAmount.milliseconds(RouterLimits.checkpointMilliseconds)
    eventLoop.assumeIsolated().scheduleTask(in: interval) { [weak self] in
      guard let self, !isStopped else { return }
      state.savePositions(of: store.sessions.values)
      checkpoint()
    }
  }

  private func expirePending(of engine: RoutedEngine, now: NIODeadline) {
    // Nobody waits for them so long.
    _ = engine.bursts.takeExpired(now: now)
    _ = engine.engineSearches.takeExpired(now: now)
    for (id, requester) in engine.pending.takeExpired(now: now) {
      for session in store.sessions.values {
        run(session) { $0.playExpired(requestID: id, &$1) }
      }
      logger.warning(
        "the engine has not answered the command \(id) in \(RouterLimits.answerSeconds) s",
        metadata: requester.webSocket.map { ["session": "\($0.request.sessionID)"] })
      requester.refuse(
        ErrorReport(
          .sourceTimeout, "the engine has not answered in \(RouterLimits.answerSeconds) s", stage: .command),
        sessionID: nil)
    }
  }

  /// Closes the WebSocket with the most waiting bytes, of a client for which too much waits.
  private func giveUpSlowest(of client: ClientID) {
    let own = store.sessions.values.lazy.flatMap(\.webSockets.values).filter {
      $0.request.grant.client == client
    }
    own.max { $0.waitingByteCount < $1.waitingByteCount }?.giveUp(
      because: "too much waits for the connections of this client")
  }

  private func reportDrops() {
    let dropped = statistics.droppedFrames - reportedDrops
    guard dropped > 0 else { return }
    reportedDrops = statistics.droppedFrames
    logger.info("slow listeners have lost \(dropped) audio frames of their own in the last second")
  }

  /// Answers everyone who waits for an engine.
  func failPending(_ report: ErrorReport, _ engine: RoutedEngine) {
    for (_, requester) in engine.pending.takeAll() { requester.refuse(report, sessionID: nil) }
  }
}
