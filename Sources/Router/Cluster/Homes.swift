import Logging
import NATS
import NIOCore
import ServiceSupport
import WireProtocol

/// Ensures that one Router runs each session: claims sessions, takes over those of lost Routers, and gives up those that other
/// Routers have claimed. `HomeDirectory` decides. Confined to the data plane's loop, which is the client's.
final class Homes: SessionHomes {
  /// Where a session's requests go.
  enum Destination {
    case here
    case router(RouterHeartbeat)
  }

  /// What is still to be done before a claimed session serves clients.
  enum SetupStage {
    /// Its stored state is being read.
    case importing
    /// The engines are asked which of them plays it.
    case locatingEngine
  }

  private static let stepMilliseconds: Int64 = 25

  let plane: DataPlane
  let routers: ClusterRouters
  let logger: Logger
  let eventLoop: any EventLoop
  let bucket: HomeBucket
  var directory: HomeDirectory
  var setupStages: [SessionID: SetupStage] = [:]
  /// Sessions that are being imported: one import of a session at a time, since an older one may end last.
  var imports: Set<SessionID> = []
  /// Sessions of which an import has failed.
  var failedImports: Set<SessionID> = []
  /// Sessions whose key is being written or read, and those of them that are being released.
  var pendingKeys: Set<SessionID> = []
  var releasing: Set<SessionID> = []
  var unused = UnusedClaims()
  private var markers = DeleteMarkers()
  private var isPurging = false
  /// Since when NATS is disconnected.
  private var disconnectedSince: NIODeadline?
  /// Sessions that a watch from the start has reported so far; nil once it has reported all.
  private var watchedIDs: Set<SessionID>?
  /// Callbacks that wait for a session's home to change, or to be known.
  var waiters: [SessionID: [Int: (RequestError?) -> Void]] = [:]
  var lastWaiter = 0
  /// Forwarded connections, by session.
  var homeObservers: [SessionID: [Int: HomeObserver]] = [:]
  var lastHomeObserver = 0
  var forwardedCount = 0
  /// Forwarded connections of each address.
  var forwardedByAddress: [ClientID: Int] = [:]
  var retryAt = NIODeadline.now()
  /// Sessions to take over as soon as there is room.
  private var dueTakeovers: [(id: SessionID, home: HomeDirectory.Home)] = []
  private(set) var problem: String? = "not connected to NATS yet"
  /// Called once, when all homes are known.
  private let onKnown: () -> Void
  private let client: NATSClient
  private let archive: SessionArchive
  /// JetStream replicas of the buckets.
  private let replicas: Int
  private var watch: NATSSubscription?
  private var observation: NATSSubscription?
  private(set) var isKnown = false
  private var isOpening = false
  private(set) var isStopping = false
  private var isStopped = false

  struct HomeObserver {
    var router: String
    var onMoved: () -> Void
  }

  init(
    plane: DataPlane, routers: ClusterRouters, client: NATSClient, archive: SessionArchive, replicas: Int,
    logger: Logger, onKnown: @escaping () -> Void
  ) {
    self.plane = plane
    self.routers = routers
    self.client = client
    self.archive = archive
    self.replicas = replicas
    self.logger = logger
    self.onKnown = onKnown
    eventLoop = client.eventLoop
    bucket = HomeBucket(client: client, router: plane.id)
    directory = HomeDirectory(router: plane.id)
    routers.isHome = { [unowned self] in directory.isHome($0) }
    routers.onJoined = { [unowned self] in directory.joined($0) }
    routers.onLeft = { [unowned self] router in
      directory.left(router, now: DataPlane.nowMilliseconds)
      takeOverDue()
    }
  }

  /// - Parameter address: at which other Routers reach this one.
  func start(address: ListenAddress) throws(NATSError) {
    try routers.start(address: address.description)
    let context = NIOLoopBound(self, eventLoop: eventLoop)
    observation = client.observe { context.value.observed($0) }
    step()
    runHousekeeping()
  }

  /// This Router is stopping: the others take over its sessions, and it takes over none.
  func drain() {
    isStopping = true
    routers.drain()
  }

  func stop() {
    isStopping = true
    isStopped = true
    routers.stop()
    watch?.cancel()
    observation?.cancel()
    for id in waiters.keys { changed(id, failure: Self.stopping) }
  }

  /// Whether this Router performs the tasks that one does for all: the connected Router with the lowest ID.
  var isCoordinator: Bool {
    isKnown && client.isConnected && !isStopping && !routers.routers.keys.contains { $0 < plane.id }
  }

  static let stopping = RequestError(.routerUnavailable, ClosingMessage.reason, hint: "connect again")

  // MARK: The buckets

  private func observed(_ state: NATSConnectionState) {
    switch state {
    case .connected:
      if let disconnectedSince, NIODeadline.now() - disconnectedSince > DeleteMarkers.absence {
        endWatching()
      }
      disconnectedSince = nil
      open()
    case .disconnected(let reason):
      disconnectedSince = disconnectedSince ?? .now()
      problem = "not connected to NATS: \(reason)"
    }
  }

  /// Creates the buckets if they do not exist; retries until it succeeds.
  private func open() {
    guard !isOpening, !isStopped else { return }
    isOpening = true
    let context = NIOLoopBound(self, eventLoop: eventLoop)
    Task { [bucket, archive, replicas, eventLoop] in
      let failure: KeyValueError?
      do throws(KeyValueError) {
        try await bucket.open(replicas: replicas)
        try await archive.open(replicas: replicas)
        failure = nil
      } catch { failure = error }
      eventLoop.execute { context.value.opened(failure) }
    }
  }

  private func opened(_ failure: KeyValueError?) {
    isOpening = false
    guard !isStopped else { return }
    guard let failure else {
      if problem != nil { logger.info("session homes are stored in JetStream") }
      problem = nil
      return startWatching()
    }
    report(failure)
    guard client.isConnected else { return }
    eventLoop.assumeIsolated().scheduleTask(in: .milliseconds(RouterLimits.homeRetryMilliseconds)) {
      [weak self] in self?.open()
    }
  }

  /// The cluster does not work without the buckets.
  private func report(_ failure: KeyValueError) {
    let words =
      failure == .noJetStream
      ? "JetStream, in which Routers store session homes, does not respond: is it enabled (nats-server -js)?"
      : "session homes cannot be stored in JetStream: \(failure)"
    if problem != words { logger.error("\(words); trying again") }
    problem = words
  }

  /// A write or read of the bucket has failed.
  func note(_ failure: KeyValueError) {
    retryAt = .now() + .milliseconds(RouterLimits.homeRetryMilliseconds)
    guard failure == .noJetStream || failure == .noBucket else { return }
    report(failure)
    open()
  }

  /// Delete markers may have been missed: the bucket is read again.
  private func endWatching() {
    watch?.cancel()
    watch = nil
  }

  private func startWatching() {
    guard watch == nil else { return }
    watchedIDs = []
    directory.watchBegins()
    let context = NIOLoopBound(self, eventLoop: eventLoop)
    do {
      watch = try bucket.watch { context.value.watched($0) }
    } catch { report(error) }
  }

  private func watched(_ write: (id: SessionID, owner: String?, revision: UInt64)?) {
    guard !isStopped else { return }
    guard let (id, owner, revision) = write else { return reportedAll() }
    watchedIDs?.insert(id)
    if owner == nil { markers.add(.init(id: id, revision: revision), now: .now()) }
    update(id) { $0.watched(id, owner: owner, revision: revision, now: DataPlane.nowMilliseconds) }
  }

  private func reportedAll() {
    for (id, home) in directory.missingFromWatch(watchedIDs ?? []) {
      update(id) { $0.recordMissing(id, since: home, now: DataPlane.nowMilliseconds) }
    }
    watchedIDs = nil
    guard !isKnown else { return }
    isKnown = true
    for id in waiters.keys { changed(id) }
    onKnown()
  }

  /// Purges old delete markers. One Router does it for all.
  private func purgeMarkers() {
    // While it is unknown which Router does it, they stay.
    guard !isPurging, isKnown, client.isConnected else { return }
    let due = markers.due(now: .now())
    guard isCoordinator, !due.isEmpty else { return }
    isPurging = true
    let context = NIOLoopBound(self, eventLoop: eventLoop)
    Task { [bucket, eventLoop] in
      var left: [DeleteMarkers.Marker] = []
      for marker in due where await !bucket.purge(marker) { left.append(marker) }
      eventLoop.execute { [left] in context.value.purged(except: left) }
    }
  }

  private func purged(except left: [DeleteMarkers.Marker]) {
    isPurging = false
    for marker in left { markers.add(marker, now: .now()) }
  }

  /// Takes what is known of a session's home, and does what follows from that.
  func update(_ id: SessionID, _ take: (inout HomeDirectory) -> HomeDirectory.Change) {
    let before = directory.home(of: id)
    let change = take(&directory)
    guard change != .nothing else { return }
    if change == .lost {
      setupStages[id] = nil
      failedImports.remove(id)
      unused.remove(id)
      plane.relinquish(id)
    }
    if let epoch = directory.ownEpoch(of: id), before?.router != directory.router {
      arrive(id, epoch: epoch, isTakeover: before != nil)
    }
    notifyHomeObservers(of: id)
    changed(id)
  }

  // MARK: Takeovers

  private func step() {
    guard !isStopped else { return }
    eventLoop.assumeIsolated().scheduleTask(in: .milliseconds(Self.stepMilliseconds)) { [weak self] in
      guard let self else { return }
      // To go through all of them takes a while where they are many.
      if dueTakeovers.isEmpty { takeOverDue() } else { takeOverNext() }
      step()
    }
  }

  private func takeOverDue() {
    dueTakeovers = directory.due(now: DataPlane.nowMilliseconds)
    takeOverNext()
  }

  /// Takes over due sessions, a limited number at a time.
  func takeOverNext() {
    guard isKnown, !isStopping, client.isConnected, retryAt <= .now() else { return }
    while pendingKeys.count < RouterLimits.maximumTakeovers, let (id, home) = dueTakeovers.popLast() {
      // It may be back since.
      guard directory.home(of: id) == home, !directory.isLive(home.router), !pendingKeys.contains(id) else {
        continue
      }
      claim(id, replacing: home)
    }
  }

  private func runHousekeeping() {
    guard !isStopped else { return }
    eventLoop.assumeIsolated().scheduleTask(in: .seconds(1)) { [weak self] in
      guard let self else { return }
      releaseUnused()
      purgeMarkers()
      runHousekeeping()
    }
  }
}
