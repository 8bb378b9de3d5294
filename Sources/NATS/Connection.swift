import Logging
import NIOCore
import NIOPosix
import NIOSSL

/// The connection to one of the servers: made, kept, made again. Confined to the loop.
final class Connection {
  private enum State {
    case unstarted
    /// Between two attempts.
    case idle
    case connecting
    /// The server's INFO is to come.
    case awaitingInfo(any Channel)
    /// CONNECT and the subscriptions are sent; the server's PONG confirms them.
    case awaitingPong(any Channel)
    case established(any Channel, server: String)
    case stopped
  }

  let configuration: NATSConfiguration
  let eventLoop: any EventLoop
  let logger: Logger
  let replies: PendingReplies
  private let outbox: Outbox
  private let counters: StatisticsCounters
  private let tls: NIOSSLContext?
  private let inbox: String
  private var state = State.unstarted
  private var servers: ServerList
  private var server: NATSServerAddress?
  /// Counts connections; each has its own number.
  private var number: UInt64 = 0
  private var unansweredPings = 0
  private var maximumPayload = 0
  private(set) var serverVersion: NATSServerVersion?
  /// The cluster's servers, as listed by the current one.
  private var clusterServers: Set<String> = []
  /// Why there is no connection. Empty while there is one.
  private(set) var disconnectReason = "no connection attempt has been made yet"
  private var lastServerError: String?
  private let subscriptions = Subscriptions()
  private let observers = ConnectionObservers()
  /// They live until their watch is cancelled.
  private var watchers: [UInt64: KeyValueWatcher] = [:]

  init(
    configuration: NATSConfiguration, tls: NIOSSLContext?, inbox: String, outbox: Outbox,
    counters: StatisticsCounters, eventLoop: any EventLoop, logger: Logger
  ) {
    self.configuration = configuration
    self.tls = tls
    self.inbox = inbox
    self.outbox = outbox
    self.counters = counters
    self.eventLoop = eventLoop
    self.logger = logger
    replies = PendingReplies(limit: configuration.limits.pendingRequestCount, eventLoop: eventLoop)
    var random = SystemRandomNumberGenerator()
    servers = ServerList(configuration.servers, limits: configuration.limits, random: &random)
  }

  // MARK: Connecting

  func start() {
    guard case .unstarted = state else { return }
    state = .idle
    tryNext()
  }

  /// Sends what waits, and ends.
  func stop() {
    guard let channel else {
      state = .stopped
      return finish("closed", .closed)
    }
    flush()
    state = .stopped
    finish("closed", .closed)
    // The write before it has at most a moment: a server that does not read does not keep us.
    channel.eventLoop.assumeIsolated().scheduleTask(in: .milliseconds(500)) { channel.close(promise: nil) }
    channel.writeAndFlush(ByteBuffer()).assumeIsolated().whenComplete { _ in channel.close(promise: nil) }
  }

  private var channel: (any Channel)? {
    switch state {
    case .awaitingInfo(let channel), .awaitingPong(let channel), .established(let channel, _): channel
    case .unstarted, .idle, .connecting, .stopped: nil
    }
  }

  private func tryNext() {
    var random = SystemRandomNumberGenerator()
    let attempt = servers.next(random: &random)
    eventLoop.assumeIsolated().scheduleTask(in: .milliseconds(attempt.delayMilliseconds)) { [self] in
      guard case .idle = state else { return }
      state = .connecting
      server = attempt.server
      connect(to: attempt.server)
    }
  }

  private func connect(to server: NATSServerAddress) {
    let limits = configuration.limits
    let connection = NIOLoopBound(self, eventLoop: eventLoop)
    ClientBootstrap(group: eventLoop)
      .connectTimeout(limits.handshakeTimeout)
      .channelOption(.tcpOption(.tcp_nodelay), value: 1)
      .channelInitializer { channel in
        channel.eventLoop.makeCompletedFuture {
          try channel.pipeline.syncOperations.addHandler(ConnectionHandler(connection: connection.value))
        }
      }
      .connect(host: server.host, port: server.port)
      .assumeIsolated()
      .whenComplete { [self] result in
        switch result {
        case .success(let channel): opened(channel)
        case .failure(let error):
          guard case .connecting = state else { return }
          connectionEnded("no connection to \(server.description): \(Self.describe(error))")
        }
      }
  }

  private func opened(_ channel: any Channel) {
    guard case .connecting = state else { return channel.close(promise: nil) }
    number += 1
    lastServerError = nil
    state = .awaitingInfo(channel)
    let number = number
    let timeout = configuration.limits.handshakeTimeout
    eventLoop.assumeIsolated().scheduleTask(in: timeout) { [weak self] in
      guard let self, self.number == number else { return }
      if case .established = state { return }
      lost("the handshake timed out after \(timeout.nanoseconds / 1_000_000) ms", channel: channel)
    }
  }

  // MARK: Events from the server

  func received(_ event: NATSParser.Event, on channel: any Channel) throws {
    guard self.channel === channel else { return }
    switch event {
    case .message(let message):
      counters.receivedMessages.add(1)
      counters.receivedBytes.add(message.byteCount)
      let id = message.layout.subscription
      if id == Self.inboxSubscription {
        replies.received(message)
      } else {
        subscriptions.deliver(message, to: id)
      }
    case .ping: sendControl(Frames.pong)
    case .pong: handlePong()
    case .ok: break
    case .info(let json): try handleInfo(ServerInfo.decode(json), channel)
    case .error(let text): handleServerError(text)
    }
  }

  private func handleInfo(_ info: ServerInfo, _ channel: any Channel) throws {
    guard let server else { return }
    servers.discover(info.clusterURLs ?? [], from: server)
    maximumPayload = max(0, info.maximumPayload)
    let before = clusterServers
    clusterServers = Set(info.clusterURLs ?? [])
    if case .awaitingInfo = state { return try startHandshake(info, channel) }
    if !before.isSubset(of: clusterServers) { observers.notifyServerLoss() }
    if info.isLameDuck == true, servers.all.count > 1 {
      // Its clients are told all at once, and do not all come to another in one moment.
      eventLoop.assumeIsolated().scheduleTask(in: .milliseconds(.random(in: 0...250))) { [weak self] in
        self?.lost("the server is about to stop", channel: channel)
      }
    }
  }

  private func startHandshake(_ info: ServerInfo, _ channel: any Channel) throws {
    guard let server else { return }
    guard info.headers == true else { throw NATSProtocolError("the server does not support message headers") }
    serverVersion = info.version.flatMap(NATSServerVersion.init)
    let mustEncrypt = server.requiresTLS || configuration.certificateAuthorityFile != nil
    let encrypts = mustEncrypt || info.requiresTLS == true
    if encrypts {
      guard info.requiresTLS == true || info.offersTLS == true else {
        throw NATSProtocolError("TLS is required, but the server does not offer it")
      }
      guard let tls else {
        throw NATSProtocolError(
          "TLS is required, but no trusted CA certificates are available: install ca-certificates or configure a CA file"
        )
      }
      let name = server.certificateName ?? server.host
      // An address is not sent as a name; it is looked for among the certificate's addresses.
      let isAddress = (try? SocketAddress(ipAddress: name, port: server.port)) != nil
      try channel.pipeline.syncOperations.addHandler(
        NIOSSLClientHandler(context: tls, serverHostname: isAddress ? nil : name), position: .first)
    }
    state = .awaitingPong(channel)
    let options = ConnectOptions(name: configuration.name, isEncrypted: encrypts, login: server.login)
    guard let path = configuration.credentialsFile else { return try join(options, channel) }
    // Reading a file may block.
    let nonce = info.nonce
    NIOThreadPool.singleton.runIfActive(eventLoop: eventLoop) { try NATSCredentials(path: path) }
      .assumeIsolated()
      .whenComplete { [weak self] result in
        guard let self, case .awaitingPong(let current) = state, current === channel else { return }
        do {
          var options = options
          try options.sign(nonce, with: result.get())
          try join(options, channel)
        } catch { lost("\(error)", channel: channel) }
      }
  }

  private func join(_ options: ConnectOptions, _ channel: any Channel) throws {
    var lines = try ByteBuffer(string: options.line())
    lines.writeString(Frames.subscription(inbox + "*", queue: nil, id: Self.inboxSubscription))
    for id in subscriptions.unsent(on: number) {
      lines.writeString(subscriptions.line(of: id) ?? "")
      subscriptions.markSent(id, on: number)
    }
    lines.writeString(Frames.ping)
    channel.writeAndFlush(lines, promise: nil)
  }

  private func handlePong() {
    unansweredPings = 0
    guard case .awaitingPong(let channel) = state, let server else { return }
    state = .established(channel, server: server.description)
    disconnectReason = ""
    servers.reached()
    counters.connections.add(1)
    outbox.open(connection: number, maximumPayload: maximumPayload)
    for id in subscriptions.unsent(on: number) { send(subscription: id) }
    logger.info("connected to NATS at \(server.description)")
    observers.notify(.connected(server: server.description))
    pingLater(number)
  }

  private func pingLater(_ number: UInt64) {
    eventLoop.assumeIsolated().scheduleTask(in: configuration.limits.pingInterval) { [weak self] in
      guard let self, self.number == number, case .established(let channel, _) = state else { return }
      guard unansweredPings < 2 else {
        return lost("the server has not answered two pings", channel: channel)
      }
      unansweredPings += 1
      sendControl(Frames.ping)
      pingLater(number)
    }
  }

  private func handleServerError(_ error: String) {
    counters.serverErrors.add(1)
    // Each publication without permission is answered: one line for those that are the same.
    if lastServerError != error { logger.warning("the NATS server reported an error: \(error)") }
    lastServerError = error
  }

  // MARK: Disconnecting

  private static func describe(_ error: any Error) -> String {
    guard let error = error as? NIOConnectionError else { return "\(error)" }
    if let failure = error.connectionErrors.first { return "\(failure.error)" }
    return (error.dnsAError ?? error.dnsAAAAError).map { "host name lookup failed: \($0)" } ?? "\(error)"
  }

  func lost(_ reason: String, channel: any Channel) {
    guard self.channel === channel else { return }
    connectionEnded(lastServerError.map { "\(reason) (\($0))" } ?? reason)
    // Closing tells the handler at once, and by then this is no longer our channel.
    channel.close(promise: nil)
  }

  private func connectionEnded(_ reason: String) {
    let wasEstablished = if case .established = state { true } else { false }
    state = .idle
    unansweredPings = 0
    if wasEstablished || disconnectReason != reason {
      logger.warning("not connected to NATS: \(reason); trying again")
    }
    finish(reason, .connectionLost, wasEstablished: wasEstablished)
    tryNext()
  }

  private func finish(_ reason: String, _ error: NATSError, wasEstablished: Bool = true) {
    disconnectReason = reason
    outbox.close()
    replies.finishAll(error)
    if wasEstablished { observers.notify(.disconnected(reason: reason)) }
  }

  // MARK: Writing

  /// Writes what waits to the socket.
  func flush() {
    guard case .established(let channel, _) = state, let (bytes, connection) = outbox.take() else { return }
    let count = bytes.readableBytes
    let outbox = outbox
    channel.writeAndFlush(bytes).whenComplete { _ in outbox.sent(count, connection: connection) }
  }

  /// Flushes once at the end of the current loop iteration.
  private func flushSoon() {
    eventLoop.assumeIsolated().execute { [self] in flush() }
  }

  /// Appends a line and schedules a flush.
  ///
  /// - Returns: the connection that has it.
  @discardableResult
  private func sendControl(_ line: String) -> UInt64? {
    let written = outbox.write(.control, byteCount: line.utf8.count) { $0.writeString(line) }
    switch written {
    case .accepted(let connection, let mustFlush):
      if mustFlush { flushSoon() }
      return connection
    case .full:
      if let channel { lost("the send buffer is full: the server does not read", channel: channel) }
      return nil
    case .notConnected, .tooLarge: return nil
    }
  }

  /// Sends a request.
  func request(
    _ payload: ByteBuffer, to subject: String, headers: NATSHeaders, timeout: TimeAmount,
    _ then: @escaping (PendingReplies.Answer) -> Void
  ) {
    var number: UInt64?
    do throws(NATSError) {
      guard case .established = state else {
        if case .stopped = state { throw .closed }
        throw .notConnected(disconnectReason)
      }
      let limits = configuration.limits
      try Frames.check(subject: subject, limits: limits, allowsWildcards: false)
      let block = headers.isEmpty ? nil : try headers.encoded()
      guard let added = replies.add(timeout: timeout, then) else {
        throw .overloaded("\(limits.pendingRequestCount) requests wait for their answers")
      }
      number = added
      let mustFlush = try outbox.publish(
        payload, to: subject, reply: "\(inbox)\(added)", headers: block, .control, absence: disconnectReason)
      if mustFlush { flushSoon() }
    } catch {
      if let number { replies.finish(number, .failure(error)) } else { then(.failure(error)) }
    }
  }

  // MARK: Subscriptions and observers

  /// All answers come to this one.
  private static let inboxSubscription: UInt64 = 1

  /// - Parameter connection: the one that was told already.
  func subscribe(
    _ id: UInt64, to subject: String, queue: String?, connection: UInt64?,
    _ onMessage: @escaping (NATSMessage) -> Void
  ) {
    subscriptions.add(id, to: subject, queue: queue, connection: connection, onMessage)
    if case .established = state, connection != number { send(subscription: id) }
  }

  func unsubscribe(_ id: UInt64) {
    if subscriptions.remove(id) == number { sendControl(Frames.end(ofSubscription: id)) }
  }

  private func send(subscription id: UInt64) {
    guard let line = subscriptions.line(of: id) else { return }
    subscriptions.markSent(id, on: sendControl(line))
  }

  /// Reports the state, now and at each change.
  func observe(_ id: UInt64, _ observer: @escaping (NATSConnectionState) -> Void) {
    observers.add(id, observer)
    if case .established(_, let server) = state {
      observer(.connected(server: server))
    } else {
      observer(.disconnected(reason: disconnectReason))
    }
  }

  func observeServerLosses(_ id: UInt64, _ observer: @escaping () -> Void) {
    observers.addServerLossObserver(id, observer)
  }

  func endObserving(_ id: UInt64) { observers.remove(id) }

  func keep(_ watcher: KeyValueWatcher, _ id: UInt64) { watchers[id] = watcher }
  func release(_ id: UInt64) -> KeyValueWatcher? { watchers.removeValue(forKey: id) }
}
