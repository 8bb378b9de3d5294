import Logging
import NATS
import NIOCore
import ServiceSupport
import WireProtocol

/// Has each session be run by one Router: claims sessions, takes over those of Routers that are gone, and loses those that
/// others have taken (`HomeDirectory` decides). Confined to the data plane's loop, which is the client's.
final class Homes: SessionHomes {
  /// Where a session's requests go.
  enum Destination {
    case here
    case router(RouterHeartbeat)
  }

  /// What stands between a session that was claimed and its clients.
  enum Arrival {
    /// What is kept of it is being read.
    case importing
    /// The engines are asked whether they play it.
    case settling
  }

  private static let stepMilliseconds: Int64 = 25

  let plane: DataPlane
  let routers: ClusterRouters
  let logger: Logger
  let eventLoop: any EventLoop
  let bucket: HomeBucket
  var directory: HomeDirectory
  var arrivals: [SessionID: Arrival] = [:]
  /// Sessions that are being imported: one import of a session at a time, since an older one may end last.
  var imports: Set<SessionID> = []
  /// Those of which an import has failed.
  var failedImports: Set<SessionID> = []
  /// Sessions whose key is being written or read, and those of them that are being given up.
  var underway: Set<SessionID> = []
  var releasing: Set<SessionID> = []
  var unused = UnusedClaims()
  private var marks = DeletionMarks()
  private var isPurging = false
  /// Since when there is no connection.
  private var absentSince: NIODeadline?
  /// What a watch that has just begun has told, until it has told all.
  private var told: Set<SessionID>?
  /// Who waits for a session's home to be another, or to be there.
  var waiters: [SessionID: [Int: (RequestError?) -> Void]] = [:]
  var lastWaiter = 0
  /// Connections that are forwarded, by session.
  var followers: [SessionID: [Int: Follower]] = [:]
  var lastFollower = 0
  var forwardedCount = 0
  /// Where each address has its connections forwarded.
  var forwardedByAddress: [ClientID: Int] = [:]
  var retryAt = NIODeadline.now()
  /// What is to be taken over as soon as there is room for it.
  private var due: [(id: SessionID, home: HomeDirectory.Home)] = []
  private(set) var problem: String? = "not connected to NATS yet"
  /// Told once, when all homes are known.
  private let onKnown: () -> Void
  private let client: NATSClient
  private let archive: SessionArchive
  /// How many NATS servers keep what Routers know.
  private let replicas: Int
  private var watch: NATSSubscription?
  private var observation: NATSSubscription?
  private(set) var isKnown = false
  private var isOpening = false
  private(set) var isStopping = false
  private var isStopped = false

  struct Follower {
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

  /// - Parameter address: where other Routers reach this one.
  func start(address: ListenAddress) throws(NATSError) {
    try routers.start(address: address.description)
    let context = NIOLoopBound(self, eventLoop: eventLoop)
    observation = client.observe { context.value.observed($0) }
    step()
    runHousekeeping()
  }

  /// This Router stops: the others take its sessions, and it takes none.
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

  /// Whether what one Router does for all is this one's: of those that live, the one whose ID is first does it.
  var isFirst: Bool {
    isKnown && client.isConnected && !isStopping && !routers.routers.keys.contains { $0 < plane.id }
  }

  static let stopping = RequestError(.routerUnavailable, ClosingMessage.reason, hint: "connect again")

  // MARK: The buckets

  private func observed(_ state: NATSConnectionState) {
    switch state {
    case .connected:
      if let absentSince, NIODeadline.now() - absentSince > DeletionMarks.absence { endWatching() }
      absentSince = nil
      open()
    case .disconnected(let reason):
      absentSince = absentSince ?? .now()
      problem = "not connected to NATS: \(reason)"
    }
  }

  /// Makes the buckets where they are not there, until that has worked.
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
      if problem != nil { logger.info("the homes of sessions are kept at NATS") }
      problem = nil
      return startWatching()
    }
    report(failure)
    guard client.isConnected else { return }
    eventLoop.assumeIsolated().scheduleTask(in: .milliseconds(RouterLimits.homeRetryMilliseconds)) {
      [weak self] in self?.open()
    }
  }

  /// Several Routers cannot do without it.
  private func report(_ failure: KeyValueError) {
    let words =
      failure == .noJetStream
      ? "the NATS servers have no JetStream (nats-server -js), in which Routers keep who runs which session"
      : "the homes of sessions cannot be kept at NATS: \(failure)"
    if problem != words { logger.error("\(words); trying again") }
    problem = words
  }

  /// Something was written or read, or could not be.
  func note(_ failure: KeyValueError) {
    retryAt = .now() + .milliseconds(RouterLimits.homeRetryMilliseconds)
    guard failure == .noJetStream || failure == .noBucket else { return }
    report(failure)
    open()
  }

  /// Marks of deletions may have gone unheard: the bucket is read anew.
  private func endWatching() {
    watch?.cancel()
    watch = nil
  }

  private func startWatching() {
    guard watch == nil else { return }
    told = []
    directory.watchBegins()
    let context = NIOLoopBound(self, eventLoop: eventLoop)
    do {
      watch = try bucket.watch { context.value.watched($0) }
    } catch { report(error) }
  }

  private func watched(_ write: (id: SessionID, owner: String?, revision: UInt64)?) {
    guard !isStopped else { return }
    guard let (id, owner, revision) = write else { return allIsTold() }
    told?.insert(id)
    if owner == nil { marks.add(.init(id: id, revision: revision), now: .now()) }
    update(id) { $0.watched(id, owner: owner, revision: revision, now: DataPlane.nowMilliseconds) }
  }

  private func allIsTold() {
    for (id, home) in directory.untold(told ?? []) {
      update(id) { $0.isMissing(id, since: home, now: DataPlane.nowMilliseconds) }
    }
    told = nil
    guard !isKnown else { return }
    isKnown = true
    for id in waiters.keys { changed(id) }
    onKnown()
  }

  /// Takes old marks away. One Router does it for all.
  private func purgeMarks() {
    // Without knowing which Router does it they are kept.
    guard !isPurging, isKnown, client.isConnected else { return }
    let due = marks.due(now: .now())
    guard isFirst, !due.isEmpty else { return }
    isPurging = true
    let context = NIOLoopBound(self, eventLoop: eventLoop)
    Task { [bucket, eventLoop] in
      var left: [DeletionMarks.Mark] = []
      for mark in due where await !bucket.purge(mark) { left.append(mark) }
      eventLoop.execute { [left] in context.value.purged(except: left) }
    }
  }

  private func purged(except left: [DeletionMarks.Mark]) {
    isPurging = false
    for mark in left { marks.add(mark, now: .now()) }
  }

  /// Takes what is known of a session's home, and does what follows from that.
  func update(_ id: SessionID, _ take: (inout HomeDirectory) -> HomeDirectory.Change) {
    let before = directory.home(of: id)
    let change = take(&directory)
    guard change != .nothing else { return }
    if change == .lost {
      arrivals[id] = nil
      failedImports.remove(id)
      unused.remove(id)
      plane.lose(id)
    }
    if let epoch = directory.ownEpoch(of: id), before?.router != directory.router {
      arrive(id, epoch: epoch, isTakeover: before != nil)
    }
    tellFollowers(of: id)
    changed(id)
  }

  // MARK: What is due

  private func step() {
    guard !isStopped else { return }
    eventLoop.assumeIsolated().scheduleTask(in: .milliseconds(Self.stepMilliseconds)) { [weak self] in
      guard let self else { return }
      // To go through all of them takes a while where they are many.
      if due.isEmpty { takeOverDue() } else { takeOverNext() }
      step()
    }
  }

  private func takeOverDue() {
    due = directory.due(now: DataPlane.nowMilliseconds)
    takeOverNext()
  }

  /// Takes over what is due, so many at a time.
  func takeOverNext() {
    guard isKnown, !isStopping, client.isConnected, retryAt <= .now() else { return }
    while underway.count < RouterLimits.maximumTakeovers, let (id, home) = due.popLast() {
      // It may be back since.
      guard directory.home(of: id) == home, !directory.isLive(home.router), !underway.contains(id) else {
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
      purgeMarks()
      runHousekeeping()
    }
  }
}
