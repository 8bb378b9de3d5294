import Collections
import Logging
import NIOCore
import WireProtocol

/// All clients of `/stream`. Those of one repository and encoding who have come equally far go in one lane, and get the
/// same messages; who comes back goes in one of its own until it has caught up. Confined to the data plane's loop.
final class StreamHub {
  struct LaneName: Hashable {
    var repository: SessionID
    var encoding: RenderEncoding
  }

  final class Lane {
    let name: LaneName
    /// The number of the last event that is done with.
    var last: Int
    var members: [ObjectIdentifier: StreamClient] = [:]
    /// Whether its next piece is being fetched.
    var isMoving = false

    init(_ name: LaneName, last: Int) {
      self.name = name
      self.last = last
    }
  }

  let eventLoop: any EventLoop
  let timing: StreamTiming
  private let store: SessionStore
  private let pieces: StreamPieces
  private let statistics: RepositoryStatistics
  private let logger: Logger
  private(set) var clients: [ObjectIdentifier: StreamClient] = [:]
  private var counts: [SessionID: Int] = [:]
  /// The newest piece of each repository.
  private var latest: [SessionID: Int]
  private var lanes: [LaneName: Lane] = [:]
  private var ready: Deque<StreamClient> = []
  private var isWriting = false
  private var isStopped = false

  /// - Parameter latest: the newest piece of each repository that is known.
  init(
    plane: DataPlane, pieces: StreamPieces, latest: [SessionID: Int], timing: StreamTiming,
    statistics: RepositoryStatistics, logger: Logger
  ) {
    eventLoop = plane.eventLoop
    store = plane.store
    self.pieces = pieces
    self.latest = latest
    self.timing = timing
    self.statistics = statistics
    self.logger = logger
  }

  func count(of repository: SessionID) -> Int { counts[repository] ?? 0 }

  // MARK: Who comes and goes

  func checkRoom(for repository: SessionID) throws(Refusal) {
    try store.checkRoom(for: repository)
    guard count(of: repository) < RouterLimits.maximumStreamsPerRepository else {
      throw Refusal(
        .tooManySessions,
        "the repository \(repository) has \(RouterLimits.maximumStreamsPerRepository) clients, the most it may have",
        hint: "try again when others have left")
    }
  }

  /// Takes a client whose response has begun.
  ///
  /// - Returns: the client, whose `finished` completes when the response is over.
  func add(_ request: StreamRequest, channel: any Channel) throws -> StreamClient {
    guard !isStopped else { throw Refusal(.engineUnavailable, ClosingMessage.reason) }
    try checkRoom(for: request.repositoryID)
    let newest = latest[request.repositoryID] ?? 0
    let client = StreamClient(
      request, channel: channel, lastEventID: min(request.lastEventID ?? newest, newest), timing: timing)
    client.outlet.onWritable = { [weak self, weak client] in
      if let client { self?.write(client) }
    }
    client.outlet.onClosed = { [weak self, weak client] in
      if let client { self?.remove(client) }
    }
    try channel.syncOptions?.setOption(
      .writeBufferWaterMark,
      value: .init(low: RouterLimits.streamSliceByteCount / 4, high: RouterLimits.streamSliceByteCount))
    channel.limitKernelUnsent()
    try channel.pipeline.syncOperations.addHandler(client.outlet, position: .first)
    store.addStream()
    clients[ObjectIdentifier(client)] = client
    counts[request.repositoryID, default: 0] += 1
    if !isLooking { lookEverySecond() }
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
    let lane = Lane(
      LaneName(repository: request.repositoryID, encoding: request.encoding), last: client.lastEventID)
    lane.members[ObjectIdentifier(client)] = client
    move(lane)
  }

  func remove(_ client: StreamClient) {
    guard clients.removeValue(forKey: ObjectIdentifier(client)) != nil else { return }
    let repository = client.request.repositoryID
    counts[repository] = count(of: repository) > 1 ? count(of: repository) - 1 : nil
    store.removeStream()
    leaveLane(client)
    client.finished.fail(ChannelError.ioOnClosedChannel)
  }

  /// A client that does not take what it is sent.
  private func drop(_ client: StreamClient, _ reason: String) {
    guard !client.isEnding else { return }
    statistics.countDroppedStream()
    logger.info(
      "a stream is closed: \(reason)",
      metadata: ["session": "\(client.request.repositoryID)", "client": "\(client.id)"])
    end(client, reason)
  }

  private func end(_ client: StreamClient, _ reason: String) {
    leaveLane(client)
    client.end(reason)
    write(client)
  }

  private func leaveLane(_ client: StreamClient) {
    let name = LaneName(repository: client.request.repositoryID, encoding: client.request.encoding)
    lanes[name]?.members[ObjectIdentifier(client)] = nil
    if lanes[name]?.members.isEmpty == true { lanes[name] = nil }
  }

  /// The Router stops.
  func stop() {
    guard !isStopped else { return }
    isStopped = true
    for client in clients.values { end(client, ClosingMessage.reason) }
  }

  // MARK: Pieces

  /// Music was made in a repository.
  func happened(_ repository: SessionID, number: Int) {
    latest[repository] = max(number, latest[repository] ?? 0)
    for encoding in StreamRequest.encodings {
      if let lane = lanes[LaneName(repository: repository, encoding: encoding)] { move(lane) }
    }
  }

  /// Fetches a lane's next piece, or joins it with the one that has come as far.
  private func move(_ lane: Lane) {
    lane.members = lane.members.filter { clients[$0.key] != nil && !$0.value.isEnding }
    let newest = latest[lane.name.repository] ?? 0
    guard !lane.isMoving, !lane.members.isEmpty else { return }
    let main = lanes[lane.name]
    if main !== lane, lane.last >= main?.last ?? newest {
      if let main {
        main.members.merge(lane.members) { $1 }
        lane.members = [:]
        return move(main)
      }
      lanes[lane.name] = lane
    }
    guard lane.last < newest else { return }
    lane.isMoving = true
    let bound = NIOLoopBound((self, lane), eventLoop: eventLoop)
    let (loop, pieces, name, last) = (eventLoop, pieces, lane.name, lane.last)
    Task {
      let step: Result<StreamPieces.Step?, any Error>
      do {
        step = .success(try await pieces.step(of: name.repository, after: last, as: name.encoding))
      } catch {
        step = .failure(error)
      }
      loop.execute {
        let (hub, lane) = bound.value
        hub.take(step, lane, upTo: newest)
      }
    }
  }

  /// - Parameter newest: the newest piece there was when the step was asked for.
  private func take(_ step: Result<StreamPieces.Step?, any Error>, _ lane: Lane, upTo newest: Int) {
    lane.isMoving = false
    lane.members = lane.members.filter { clients[$0.key] != nil && !$0.value.isEnding }
    switch step {
    case .success(let step?): give(step, to: lane)
    case .success(nil):
      lane.last = newest
      goOn(lane)
    case .failure(let error):
      logger.error("a piece cannot be read: \(error)", metadata: ["session": "\(lane.name.repository)"])
      lane.last = newest
      sayError(StreamError(message: "pieces could not be read", code: ErrorCode.internal.rawValue), lane)
      goOn(lane)
    }
  }

  private func give(_ step: StreamPieces.Step, to lane: Lane) {
    // A client that came while this piece was being rendered has begun after it.
    let clients = lane.members.values.filter { $0.lastEventID < step.number }
    if step.isAfterGap {
      for client in clients {
        sayGap(client, "pieces from \(lane.last + 1) to \(step.number - 1) are no longer kept")
      }
    }
    for client in clients { send(step.parameters, to: client) }
    switch step.sound {
    case .success(let frame):
      statistics.countSent(clients.count)
      for client in clients {
        send(frame, to: client)
        client.lastEventID = step.number
      }
      lane.last = step.number
    case .failure(let report):
      sayError(StreamError(message: report.message, code: report.code.rawValue, number: step.number), lane)
      // Who catches up would hear of every piece that it cannot have. It can come back for all of them.
      lane.last = lanes[lane.name] === lane ? step.number : latest[lane.name.repository] ?? step.number
    }
    goOn(lane)
  }

  /// One that catches up is given the next piece when it has taken this one.
  private func goOn(_ lane: Lane) {
    guard lanes[lane.name] !== lane, let client = lane.members.values.first,
      let drained = client.outlet.whenDrained()
    else { return move(lane) }
    drained.assumeIsolated().whenComplete { [weak self] _ in self?.move(lane) }
  }

  private func sayGap(_ client: StreamClient, _ message: String) {
    let error = StreamError(message: message, code: StreamError.gapCode)
    send(StreamFrame.make(id: client.lastEventID, StreamMessage("error", error)), to: client)
  }

  private func sayError(_ error: StreamError, _ lane: Lane) {
    for client in lane.members.values {
      send(StreamFrame.make(id: client.lastEventID, StreamMessage("error", error)), to: client)
    }
  }

  // MARK: Writing

  private func send(_ frame: ByteBuffer, to client: StreamClient) {
    guard !client.isEnding else { return }
    if client.outlet.send(frame) {
      write(client)
    } else {
      drop(client, "too much waits to be read")
    }
  }

  private func write(_ client: StreamClient) {
    guard client.outlet.canWrite, !client.isReady else { return }
    client.isReady = true
    ready.append(client)
    guard !isWriting else { return }
    isWriting = true
    eventLoop.execute { [bound = NIOLoopBound(self, eventLoop: eventLoop)] in bound.value.writeForAWhile() }
  }

  /// A part of a message to each in turn, and then the loop is left to sessions' packets: a long message for a
  /// thousand clients takes many turns.
  private func writeForAWhile() {
    let end = NIODeadline.now() + .microseconds(RouterLimits.streamTurnMicroseconds)
    while let client = ready.popFirst() {
      client.isReady = false
      client.outlet.writeSlice()
      if client.outlet.canWrite, !client.isReady {
        client.isReady = true
        ready.append(client)
      }
      if NIODeadline.now() >= end, !ready.isEmpty {
        let pause = TimeAmount.microseconds(RouterLimits.streamPauseMicroseconds)
        eventLoop.assumeIsolated().scheduleTask(in: pause) { [weak self] in self?.writeForAWhile() }
        return
      }
    }
    isWriting = false
  }

  // MARK: Once a second

  private var nextCleanUp = NIODeadline.now()

  private var isLooking = false

  private func lookEverySecond() {
    isLooking = true
    eventLoop.assumeIsolated().scheduleTask(in: .seconds(1)) { [weak self] in
      guard let self else { return }
      isLooking = false
      guard !clients.isEmpty, !isStopped else { return }
      let now = NIODeadline.now()
      for client in clients.values { look(at: client, now) }
      if now >= nextCleanUp {
        nextCleanUp = now + timing.cleanUp
        for client in clients.values { client.lookAtAcknowledgements() }
      }
      lookEverySecond()
    }
  }

  private func look(at client: StreamClient, _ now: NIODeadline) {
    if client.isEnding {
      return
    } else if client.request.grant.isExpired() {
      end(client, Grant.expiredReason)
    } else if client.outlet.waitingByteCount > 0, now - client.outlet.lastTaken >= timing.stuck {
      drop(client, "nothing was taken for \(timing.stuck.nanoseconds / 1_000_000_000) s")
    } else if now - client.lastAcknowledged >= timing.stale + timing.cleanUp {
      drop(client, "no heartbeat was taken for \(timing.stale.nanoseconds / 1_000_000_000) s")
    } else if now >= client.nextHeartbeat {
      client.nextHeartbeat = now + timing.heartbeat
      // One that has something to take needs no heartbeat.
      guard client.outlet.waitingByteCount == 0 else { return }
      let heartbeat = StreamHeartbeat(timestamp: Grant.nowMilliseconds)
      send(StreamFrame.make(id: client.lastEventID, StreamMessage("heartbeat", heartbeat)), to: client)
    }
  }
}
