import Logging
import NIOCore
import ServiceSupport
import WireProtocol

/// All clients of `/stream`: who comes and goes. Those of one repository and encoding who have come equally far go in
/// one cohort, and get the same messages; who comes back, or has no room for the next piece, goes in one of its own
/// until it has caught up (`StreamHub+Pieces.swift`). Confined to the data plane's loop.
final class StreamHub {
  let eventLoop: any EventLoop
  let timing: StreamTiming
  let pieces: StreamPieces
  let statistics: RepositoryStatistics
  let logger: Logger
  /// The number of a repository's newest event that has become music.
  let newest: (SessionID) -> Int
  private let store: SessionStore
  private let writer: StreamWriter
  private(set) var clients: [ObjectIdentifier: StreamClient] = [:]
  private var counts: [SessionID: Int] = [:]
  private var clientCounts: [ClientID: Int] = [:]
  private(set) var isStopped = false

  /// For each repository and encoding, the clients that have had every piece.
  var cohorts: [StreamCohort.Key: StreamCohort] = [:]
  /// What waits to be taken.
  var budget = StreamBudget()
  /// Lanes of one client each that wait for room to catch up.
  var catchingUp = RoundRobinQueue<StreamCohort>()
  /// Pieces that are being fetched for such: by client.
  var fetchCounts: [ClientID: Int] = [:]
  var fetchNumber = 0
  /// Renderings that nobody but the one who catches up needs.
  var renderings = KeyedBuckets<ClientID>(
    .init(burst: RouterLimits.catchUpRenderingBurst, perSecond: RouterLimits.catchUpRenderingsPerSecond),
    maximumCount: RouterLimits.maximumRateKeys)
  var nextCleanUp = NIODeadline.now()
  var isHousekeepingScheduled = false

  init(
    plane: DataPlane, pieces: StreamPieces, newest: @escaping (SessionID) -> Int, timing: StreamTiming,
    statistics: RepositoryStatistics, logger: Logger
  ) {
    eventLoop = plane.eventLoop
    store = plane.store
    writer = StreamWriter(eventLoop: plane.eventLoop)
    self.pieces = pieces
    self.newest = newest
    self.timing = timing
    self.statistics = statistics
    self.logger = logger
  }

  func count(of repository: SessionID) -> Int { counts[repository] ?? 0 }

  // MARK: Who comes and goes

  func checkRoom(for request: StreamRequest) throws(RequestError) {
    let repository = request.repositoryID
    try store.checkRoom(for: repository)
    guard count(of: repository) < RouterLimits.maximumStreamsPerRepository else {
      throw RequestError(
        .tooManySessions,
        "the repository \(repository) has \(RouterLimits.maximumStreamsPerRepository) clients, the most it may have",
        hint: "try again when others have left")
    }
    let most = RouterLimits.maximumStreamsPerClient * request.grant.limitFactor
    guard clientCounts[request.grant.client] ?? 0 < most else {
      throw RequestError(
        .tooManySessions, "you have \(most) event streams, the most that one client may have",
        hint: "close some of them")
    }
  }

  /// Takes a client whose response has begun.
  ///
  /// - Returns: the client, whose `finished` completes when the response is over.
  func add(_ request: StreamRequest, channel: any Channel) throws -> StreamClient {
    guard !isStopped else { throw RequestError(.engineUnavailable, ClosingMessage.reason) }
    try checkRoom(for: request)
    let newest = newest(request.repositoryID)
    let client = StreamClient(
      request, channel: channel, lastEventID: min(request.lastEventID ?? newest, newest), timing: timing)
    client.outlet.onWritable = { [weak self, weak client] in
      if let client { self?.writer.write(client) }
    }
    client.outlet.onClosed = { [weak self, weak client] in
      if let client { self?.remove(client) }
    }
    client.outlet.onReleased = { [weak self, account = client.account] piece in
      self?.release(piece.id, account)
    }
    try channel.syncOptions?.setOption(
      .writeBufferWaterMark,
      value: .init(low: RouterLimits.streamSliceByteCount / 4, high: RouterLimits.streamSliceByteCount))
    channel.limitKernelUnsent()
    try channel.pipeline.syncOperations.addHandler(client.outlet, position: .first)
    store.addStream()
    clients[ObjectIdentifier(client)] = client
    counts[request.repositoryID, default: 0] += 1
    clientCounts[client.account, default: 0] += 1
    if !isHousekeepingScheduled { scheduleHousekeeping() }
    greet(client)
    return client
  }

  private func greet(_ client: StreamClient) {
    let request = client.request
    let greeting = StreamGreeting(
      clientId: client.id, repoId: request.repositoryID, encoding: request.encoding,
      lastEventId: client.lastEventID)
    let frame = StreamFrame.make(
      id: client.lastEventID, StreamMessage("connected", greeting),
      retryMilliseconds: RouterLimits.streamRetryMilliseconds)
    send(frame, to: client)
    if let wanted = request.lastEventID, wanted > client.lastEventID {
      sayGap(client, "this Router has no piece \(wanted): the newest is \(client.lastEventID)")
    }
    startCohort(of: client)
  }

  func remove(_ client: StreamClient) {
    guard clients.removeValue(forKey: ObjectIdentifier(client)) != nil else { return }
    let repository = client.request.repositoryID
    counts.countDown(repository)
    clientCounts.countDown(client.account)
    store.removeStream()
    leaveCohort(client)
    client.finished.fail(ChannelError.ioOnClosedChannel)
  }

  /// A client that does not take what it is sent.
  func drop(_ client: StreamClient, _ reason: String) {
    guard !client.isEnding else { return }
    statistics.countDroppedStream()
    logger.info(
      "a stream is closed: \(reason)",
      metadata: ["session": "\(client.request.repositoryID)", "client": "\(client.id)"])
    guard client.outlet.isInsideMessage else { return end(client, reason) }
    // It would have to take the rest of the message before it could read why.
    leaveCohort(client)
    client.cut()
  }

  func end(_ client: StreamClient, _ reason: String) {
    leaveCohort(client)
    client.end(reason)
    writer.write(client)
  }

  private func leaveCohort(_ client: StreamClient) {
    let key = client.cohortKey
    cohorts[key]?.members[ObjectIdentifier(client)] = nil
    if cohorts[key]?.members.isEmpty == true { cohorts[key] = nil }
    catchingUp.removeAll(of: client.account) { $0.members[ObjectIdentifier(client)] != nil }
  }

  /// The Router stops.
  func stop() {
    guard !isStopped else { return }
    isStopped = true
    for client in clients.values { end(client, ClosingMessage.reason) }
  }

  // MARK: Messages

  /// - Parameter piece: the one whose message it is.
  func send(_ frame: ByteBuffer, of piece: StreamPiece? = nil, to client: StreamClient) {
    guard !client.isEnding else { return }
    if let piece { budget.hold(piece.id, byteCount: piece.byteCount, client: client.account) }
    if client.outlet.send(frame, of: piece) {
      writer.write(client)
    } else {
      drop(client, "too much waits to be read")
    }
  }

  func sayGap(_ client: StreamClient, _ message: String) {
    let error = StreamError(message: message, code: StreamError.gapCode)
    send(StreamFrame.make(id: client.lastEventID, StreamMessage("error", error)), to: client)
  }

  func sayError(_ error: StreamError, _ cohort: StreamCohort) {
    for client in cohort.members.values {
      send(StreamFrame.make(id: client.lastEventID, StreamMessage("error", error)), to: client)
    }
  }
}
