import Logging
import NIOCore
import NIOPosix
import NIOSSL

/// The connection to one of the servers: made, kept, made again, with its subscriptions. Confined to the loop.
final class Connection {
  private enum State {
    case unstarted
    /// Between two attempts.
    case idle
    case connecting
    /// INFO is to come.
    case greeting(any Channel)
    /// The server has our CONNECT and the subscriptions; its PONG says that it takes them.
    case joining(any Channel)
    case established(any Channel, server: String)
    case stopped
  }

  private struct Subscription {
    var subject: String
    var queue: String?
    var onMessage: (NATSMessage) -> Void
    /// The connection that was told.
    var connection: UInt64?
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
  /// The cluster's servers, as the server at hand has named them.
  private var named: Set<String> = []
  /// Why there is no connection.
  private(set) var absence = "it has not been tried yet"
  private var lastServerError: String?
  private var subscriptions: [UInt64: Subscription] = [:]
  private var observers: [UInt64: (NATSConnectionState) -> Void] = [:]
  private var lossObservers: [UInt64: () -> Void] = [:]
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

  // MARK: Making it

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
    case .greeting(let channel), .joining(let channel), .established(let channel, _): channel
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
          wentAway("no connection to \(server.description): \(Self.describe(error))")
        }
      }
  }

  private func opened(_ channel: any Channel) {
    guard case .connecting = state else { return channel.close(promise: nil) }
    number += 1
    lastServerError = nil
    state = .greeting(channel)
    let number = number
    let timeout = configuration.limits.handshakeTimeout
    eventLoop.assumeIsolated().scheduleTask(in: timeout) { [weak self] in
      guard let self, self.number == number else { return }
      if case .established = state { return }
      lost("the server has not accepted us in \(timeout.nanoseconds / 1_000_000) ms", channel: channel)
    }
  }

  // MARK: What the server says

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
        subscriptions[id]?.onMessage(message)
      }
    case .ping: sendControl(Frames.pong)
    case .pong: ponged()
    case .ok: break
    case .info(let json): try informed(ServerInfo.decode(json), channel)
    case .error(let text): told(of: text)
    }
  }

  private func informed(_ info: ServerInfo, _ channel: any Channel) throws {
    guard let server else { return }
    servers.discover(info.others ?? [], from: server)
    maximumPayload = max(0, info.maximumPayload)
    let before = named
    named = Set(info.others ?? [])
    if case .greeting = state { return try greeted(info, channel) }
    if !before.isSubset(of: named) {
      for id in lossObservers.keys.sorted() { lossObservers[id]?() }
    }
    if info.isLeaving == true, servers.all.count > 1 {
      // Its clients are told all at once, and do not all come to another in one moment.
      eventLoop.assumeIsolated().scheduleTask(in: .milliseconds(.random(in: 0...250))) { [weak self] in
        self?.lost("the server is about to stop", channel: channel)
      }
    }
  }

  private func greeted(_ info: ServerInfo, _ channel: any Channel) throws {
    guard let server else { return }
    guard info.headers == true else { throw NATSProtocolError("the server knows no headers") }
    serverVersion = info.version.flatMap(NATSServerVersion.init)
    let mustEncrypt = server.requiresTLS || configuration.certificateAuthorityFile != nil
    let encrypts = mustEncrypt || info.requiresTLS == true
    if encrypts {
      guard info.requiresTLS == true || info.offersTLS == true else {
        throw NATSProtocolError("the server does not encrypt, and it has to")
      }
      guard let tls else {
        throw NATSProtocolError(
          "it has to be encrypted, and this machine knows no authorities: install ca-certificates, or name a file of them"
        )
      }
      let name = server.certificateName ?? server.host
      // An address is not sent as a name; it is looked for among the certificate's addresses.
      let isAddress = (try? SocketAddress(ipAddress: name, port: server.port)) != nil
      try channel.pipeline.syncOperations.addHandler(
        NIOSSLClientHandler(context: tls, serverHostname: isAddress ? nil : name), position: .first)
    }
    state = .joining(channel)
    let options = ConnectOptions(name: configuration.name, isEncrypted: encrypts, login: server.login)
    guard let path = configuration.credentialsFile else { return try join(options, channel) }
    // Reading a file may block.
    let nonce = info.nonce
    NIOThreadPool.singleton.runIfActive(eventLoop: eventLoop) { try NATSCredentials(path: path) }
      .assumeIsolated()
      .whenComplete { [weak self] result in
        guard let self, case .joining(let current) = state, current === channel else { return }
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
    for (id, subscription) in subscriptions {
      lines.writeString(Frames.subscription(subscription.subject, queue: subscription.queue, id: id))
      subscriptions[id]?.connection = number
    }
    lines.writeString(Frames.ping)
    channel.writeAndFlush(lines, promise: nil)
  }

  private func ponged() {
    unansweredPings = 0
    guard case .joining(let channel) = state, let server else { return }
    state = .established(channel, server: server.description)
    absence = ""
    servers.reached()
    counters.connections.add(1)
    outbox.open(connection: number, maximumPayload: maximumPayload)
    for id in subscriptions.keys where subscriptions[id]?.connection != number { sendSubscription(id) }
    logger.info("connected to NATS at \(server.description)")
    tell(.connected(server: server.description))
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

  private func told(of error: String) {
    counters.serverErrors.add(1)
    // Each publication without permission is answered: one line for those that are the same.
    if lastServerError != error { logger.warning("NATS says: \(error)") }
    lastServerError = error
  }

  // MARK: Losing it

  private static func describe(_ error: any Error) -> String {
    guard let error = error as? NIOConnectionError else { return "\(error)" }
    if let failure = error.connectionErrors.first { return "\(failure.error)" }
    return (error.dnsAError ?? error.dnsAAAAError).map { "the name is not known: \($0)" } ?? "\(error)"
  }

  func lost(_ reason: String, channel: any Channel) {
    guard self.channel === channel else { return }
    wentAway(lastServerError.map { "\(reason) (\($0))" } ?? reason)
    // Closing tells the handler at once, and by then this is no longer our channel.
    channel.close(promise: nil)
  }

  private func wentAway(_ reason: String) {
    let wasEstablished = if case .established = state { true } else { false }
    state = .idle
    unansweredPings = 0
    if wasEstablished || absence != reason {
      logger.warning("not connected to NATS: \(reason); trying again")
    }
    finish(reason, .connectionLost, wasEstablished: wasEstablished)
    tryNext()
  }

  private func finish(_ reason: String, _ error: NATSError, wasEstablished: Bool = true) {
    absence = reason
    outbox.close()
    replies.finishAll(error)
    if wasEstablished { tell(.disconnected(reason: reason)) }
  }

  // MARK: What we say

  /// Writes what waits to the socket.
  func flush() {
    guard case .established(let channel, _) = state, let (bytes, connection) = outbox.take() else { return }
    let count = bytes.readableBytes
    let outbox = outbox
    channel.writeAndFlush(bytes).whenComplete { _ in outbox.sent(count, connection: connection) }
  }

  /// Writes once, what is appended until the loop is done with what it is at.
  private func flushSoon() {
    eventLoop.assumeIsolated().execute { [self] in flush() }
  }

  /// Appends a line, and sees to it that it is sent.
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
      if let channel { lost("the server does not read", channel: channel) }
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
        throw .notConnected(absence)
      }
      let limits = configuration.limits
      try Frames.check(subject: subject, limits: limits, allowsWildcards: false)
      let block = headers.isEmpty ? nil : try headers.encoded()
      guard let added = replies.add(timeout: timeout, then) else {
        throw .overloaded("\(limits.pendingRequestCount) requests wait for their answers")
      }
      number = added
      let mustFlush = try outbox.publish(
        payload, to: subject, reply: "\(inbox)\(added)", headers: block, .control, absence: absence)
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
    subscriptions[id] = Subscription(
      subject: subject, queue: queue, onMessage: onMessage, connection: connection)
    if case .established = state, connection != number { sendSubscription(id) }
  }

  func unsubscribe(_ id: UInt64) {
    guard let subscription = subscriptions.removeValue(forKey: id) else { return }
    if subscription.connection == number { sendControl(Frames.end(ofSubscription: id)) }
  }

  private func sendSubscription(_ id: UInt64) {
    guard let subscription = subscriptions[id] else { return }
    let line = Frames.subscription(subscription.subject, queue: subscription.queue, id: id)
    subscriptions[id]?.connection = sendControl(line)
  }

  /// Tells how it is, now and at each change.
  func observe(_ id: UInt64, _ observer: @escaping (NATSConnectionState) -> Void) {
    observers[id] = observer
    observer(current)
  }

  func endObserving(_ id: UInt64) {
    observers[id] = nil
    lossObservers[id] = nil
  }

  func observeLosses(_ id: UInt64, _ observer: @escaping () -> Void) { lossObservers[id] = observer }

  func keep(_ watcher: KeyValueWatcher, _ id: UInt64) { watchers[id] = watcher }
  func release(_ id: UInt64) -> KeyValueWatcher? { watchers.removeValue(forKey: id) }

  private var current: NATSConnectionState {
    if case .established(_, let server) = state { return .connected(server: server) }
    return .disconnected(reason: absence)
  }

  private func tell(_ state: NATSConnectionState) {
    for id in observers.keys.sorted() { observers[id]?(state) }
  }
}

/// How a client stands with its servers.
public enum NATSConnectionState: Sendable, Equatable {
  /// Subscriptions are in effect.
  case connected(server: String)
  case disconnected(reason: String)
}
