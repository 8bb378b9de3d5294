import Logging
import NIOCore
import Synchronization

/// A client of a NATS server or cluster, for any thread: it keeps one connection to one of the servers, and makes it again
/// at another when it is lost.
///
/// Nothing is kept for later: without a connection a publication is dropped and counted, and a request fails. What the
/// client was subscribed to comes again with the next connection.
///
/// Callbacks run on the event loop, one after another, and must not block: while one runs, nothing else is read.
public final class NATSClient: Sendable {
  public let eventLoop: any EventLoop
  private let configuration: NATSConfiguration
  private let outbox: Outbox
  private let counters = StatisticsCounters()
  private let connection: NIOLoopBoundBox<Connection>
  /// Numbers of subscriptions and observers; 1 is the inbox.
  private let lastID = Atomic<UInt64>(1)
  private let subscriptionCount = Atomic(0)
  /// What answers are sent to begins with it; ends with a dot.
  let inbox: String

  /// - Throws: what is wrong with the configuration.
  public init(
    _ configuration: NATSConfiguration, eventLoop: any EventLoop, logger: Logger
  ) throws(NATSError) {
    guard !configuration.servers.isEmpty, configuration.servers.count <= configuration.limits.serverCount
    else {
      throw .invalid("give 1 to \(configuration.limits.serverCount) NATS servers")
    }
    self.configuration = configuration
    self.eventLoop = eventLoop
    let name = (0..<22).map { _ in "0123456789abcdefghijklmnopqrstuvwxyz".randomElement() ?? "0" }
    inbox = "_INBOX.\(String(name))."
    outbox = Outbox(limit: configuration.limits.outboundByteCount)
    connection = NIOLoopBoundBox.makeBoxSendingValue(
      Connection(
        configuration: configuration, tls: try configuration.makeTLSContext(), inbox: inbox, outbox: outbox,
        counters: counters, eventLoop: eventLoop, logger: logger),
      eventLoop: eventLoop)
  }

  /// Begins to connect, and goes on trying until `close`.
  public func start() {
    withConnection { $0.start() }
  }

  /// Sends what waits, and ends. Requests that wait fail.
  public func close() {
    withConnection { $0.stop() }
  }

  /// - Throws: why there is no connection after the time.
  public func waitUntilConnected(timeout: TimeAmount) async throws(NATSError) {
    let result: Result<Void, NATSError> = await withCheckedContinuation { continuation in
      withConnection { [eventLoop, id = newID()] connection in
        var waiting: CheckedContinuation<Result<Void, NATSError>, Never>? = continuation
        let timer = eventLoop.assumeIsolated().scheduleTask(in: timeout) {
          connection.endObserving(id)
          waiting?.resume(returning: .failure(.notConnected(connection.disconnectReason)))
          waiting = nil
        }
        connection.observe(id) { state in
          guard case .connected = state else { return }
          timer.cancel()
          waiting?.resume(returning: .success(()))
          waiting = nil
          connection.endObserving(id)
        }
      }
    }
    try result.get()
  }

  public var isConnected: Bool { outbox.isOpen }

  public var statistics: NATSStatistics { counters.snapshot() }

  /// Bytes that wait to be sent now.
  public var outboundByteCount: Int { outbox.byteCount }

  /// Publishes, without waiting for anything: the payload is copied to what the loop sends next.
  ///
  /// - Returns: false where it was dropped, which `statistics` count by cause.
  @discardableResult
  public func publish(
    _ payload: ByteBuffer, to subject: String, reply: String? = nil, headers: NATSHeaders = [:]
  ) -> Bool {
    do throws(NATSError) {
      try Frames.check(subject: subject, limits: configuration.limits, allowsWildcards: false)
      if let reply { try Frames.check(subject: reply, limits: configuration.limits, allowsWildcards: false) }
      let mustFlush = try outbox.publish(
        payload, to: subject, reply: reply, headers: headers.isEmpty ? nil : headers.encoded(), .publication,
        absence: "")
      if mustFlush { flushSoon() }
      counters.publishedMessages.add(1)
      counters.publishedBytes.add(payload.readableBytes)
      return true
    } catch {
      switch error {
      case .overloaded: counters.droppedWhileFull.add(1)
      case .notConnected: counters.droppedWhileDisconnected.add(1)
      default: counters.droppedAsInvalid.add(1)
      }
      return false
    }
  }

  /// Subscribes. Of those with the same queue group, one is given each message.
  ///
  /// What this thread publishes afterwards finds the subscription. It lasts until it is cancelled.
  public func subscribe(
    to subject: String, queue: String? = nil, _ onMessage: @escaping @Sendable (NATSMessage) -> Void
  ) throws(NATSError) -> NATSSubscription {
    try Frames.check(subject: subject, limits: configuration.limits, allowsWildcards: true)
    if let queue { try Frames.check(subject: queue, limits: configuration.limits, allowsWildcards: false) }
    let limit = configuration.limits.subscriptionCount
    guard subscriptionCount.wrappingAdd(1, ordering: .relaxed).newValue <= limit else {
      subscriptionCount.add(-1)
      throw .overloaded("\(limit) subscriptions")
    }
    let id = newID()
    let line = Frames.subscription(subject, queue: queue, id: id)
    var told: UInt64?
    let written = outbox.write(.control, byteCount: line.utf8.count) { $0.writeString(line) }
    if case .accepted(let connection, let mustFlush) = written {
      told = connection
      if mustFlush { flushSoon() }
    }
    withConnection { [told] in $0.subscribe(id, to: subject, queue: queue, connection: told, onMessage) }
    return NATSSubscription { [self] in
      withConnection { $0.unsubscribe(id) }
      subscriptionCount.add(-1)
    }
  }

  /// Sends a request; the answer, or why there is none, comes on the loop.
  public func request(
    _ payload: ByteBuffer, to subject: String, headers: NATSHeaders = [:], timeout: TimeAmount,
    then: @escaping @Sendable (Result<NATSMessage, NATSError>) -> Void
  ) {
    withConnection { $0.request(payload, to: subject, headers: headers, timeout: timeout, then) }
  }

  /// Sends a request and waits for the answer, at most for the timeout: a cancelled task waits too.
  public func request(
    _ payload: ByteBuffer, to subject: String, headers: NATSHeaders = [:], timeout: TimeAmount = .seconds(5)
  ) async throws(NATSError) -> NATSMessage {
    let answer = await withCheckedContinuation { continuation in
      request(payload, to: subject, headers: headers, timeout: timeout) { continuation.resume(returning: $0) }
    }
    return try answer.get()
  }

  /// Tells whether there is a connection, at once and at each change, on the loop.
  public func observe(_ observer: @escaping @Sendable (NATSConnectionState) -> Void) -> NATSSubscription {
    let id = newID()
    withConnection { $0.observe(id, observer) }
    return NATSSubscription { [self] in withConnection { $0.endObserving(id) } }
  }

  /// Tells, on the loop, that the cluster has lost a server, whose clients are on their way to another. It comes within
  /// milliseconds of the first answer that nobody is there. It does not come where the servers keep their addresses to
  /// themselves (`no_advertise`) or share one.
  public func observeServerLosses(_ observer: @escaping @Sendable () -> Void) -> NATSSubscription {
    let id = newID()
    withConnection { $0.observeServerLosses(id, observer) }
    return NATSSubscription { [self] in withConnection { $0.endObserving(id) } }
  }

  /// Of the server at hand, or of the last one; nil where none has said it.
  var serverVersion: NATSServerVersion? {
    get async {
      await withCheckedContinuation { continuation in
        withConnection { continuation.resume(returning: $0.serverVersion) }
      }
    }
  }

  func newID() -> UInt64 { lastID.wrappingAdd(1, ordering: .relaxed).newValue }

  private func flushSoon() {
    eventLoop.execute { [connection] in connection.value.flush() }
  }

  /// Runs on the loop: at once where this is the loop.
  func withConnection(_ body: @escaping @Sendable (Connection) -> Void) {
    if eventLoop.inEventLoop { return body(connection.value) }
    eventLoop.execute { [connection] in body(connection.value) }
  }
}

/// Something that goes on until it is cancelled. On the loop, nothing comes after `cancel`; on another thread, what the
/// loop is at may.
public final class NATSSubscription: Sendable {
  private let end: Mutex<(@Sendable () -> Void)?>

  init(_ end: @escaping @Sendable () -> Void) { self.end = Mutex(end) }

  public func cancel() {
    let end = end.withLock { end in
      defer { end = nil }
      return end
    }
    end?()
  }
}
