import Logging
import NIOCore
import WireProtocol

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// What the link tells its owner. Called on the loop.
protocol EngineLinkDelegate: AnyObject {
  func engineConnected(_ hello: Hello)
  func engineWentAway()
  func engineReported(_ event: EngineEvent)
}

/// The link to one engine: made, greeted, kept, and made again, over whatever transport. Confined to the loop.
final class EngineLink {
  private enum State {
    case idle
    case connecting
    /// Connected, and hello has not come yet.
    case greeting(any EngineConnection)
    case established(any EngineConnection)
    case stopped
  }

  let engine: EngineNumber
  let packets: PacketPath
  /// What the engine gives those who join, out of its stream.
  let burst = BurstCollector()
  private let transport: any EngineTransport
  private let eventLoop: any EventLoop
  private let logger: Logger
  private let statistics: RouterStatistics
  private unowned let delegate: any EngineLinkDelegate
  private var state = State.idle
  /// What the engine has said before it closes.
  private var closeReason: String?
  private var backoff = ReconnectBackoff()
  private(set) var status = EngineStatus.away("no engine has been connected yet")

  init(
    _ engine: EngineNumber = .local, transport: any EngineTransport, eventLoop: any EventLoop,
    store: SessionStore, delegate: any EngineLinkDelegate, logger: Logger
  ) {
    self.engine = engine
    self.transport = transport
    self.eventLoop = eventLoop
    packets = store.packets
    self.delegate = delegate
    self.logger = logger
    statistics = store.statistics
  }

  /// Whether the engine has said that it stops.
  var hasSaidWhy: Bool { closeReason != nil }

  /// Whether the engine gives what a session has just played to those who join.
  private(set) var givesBursts = false

  /// hello has come, in our protocol version.
  var isEstablished: Bool {
    if case .established = state { true } else { false }
  }

  func start() {
    reconnect(afterMilliseconds: backoff.next())
  }

  func stop() {
    let connection = self.connection
    state = .stopped
    connection?.close()
  }

  /// Writes one command.
  func send(_ command: EngineCommand) throws(RequestError) {
    guard case .established(let connection) = state else {
      throw RequestError(
        .engineUnavailable, status.message ?? "no engine is connected",
        hint: "the Router keeps trying; GET /ready says when it is back")
    }
    guard connection.isWritable else {
      throw RequestError(.engineUnavailable, "the engine does not read its commands", hint: "try again")
    }
    connection.write(ByteBuffer(bytes: command.encodedLine()))
  }

  private var connection: (any EngineConnection)? {
    switch state {
    case .greeting(let connection), .established(let connection): connection
    case .idle, .connecting, .stopped: nil
    }
  }

  private func reconnect(afterMilliseconds milliseconds: Int64) {
    eventLoop.assumeIsolated().scheduleTask(in: .milliseconds(milliseconds)) { [weak self] in
      self?.connect()
    }
  }

  private func connect() {
    guard case .idle = state else { return }
    state = .connecting
    transport.connect(self)
  }

  // MARK: What the transport says

  /// There is a connection. What comes on it goes to an `EngineStream`.
  func opened(_ connection: any EngineConnection) {
    guard case .connecting = state else { return connection.close() }
    state = .greeting(connection)
    closeReason = nil
    eventLoop.assumeIsolated().scheduleTask(in: .seconds(RouterLimits.helloSeconds)) { [weak self] in
      guard let self, case .greeting(let waiting) = state, waiting === connection else { return }
      failed(
        "\(transport.place) accepted and said no hello for \(RouterLimits.helloSeconds) s", on: connection)
    }
  }

  func failedToConnect(_ reason: String) {
    guard case .connecting = state else { return }
    wentAway(reason, retryMilliseconds: nil)
  }

  /// Takes one event.
  ///
  /// - Returns: what is wrong with it, where the connection cannot be kept.
  func received(event json: ArraySlice<UInt8>) -> String? {
    statistics.eventsReceived += 1
    if case .greeting(let connection) = state { return greeted(json, connection) }
    do {
      let event = try EngineEvent.decode(json)
      if case .error(let report) = event.body, event.sessionID == nil, report.code == .engineUnavailable {
        closeReason = report.message
      }
      delegate.engineReported(event)
    } catch {
      // The line is whole, so the stream is in step; both sides are of one version, so it is a fault.
      statistics.protocolErrors += 1
      logger.error("an event of the engine cannot be read: \(error): \(Self.beginning(of: json))")
    }
    return nil
  }

  private func greeted(_ json: ArraySlice<UInt8>, _ connection: any EngineConnection) -> String? {
    guard let greeting = try? JSONDecoder().decode(HelloGreeting.self, from: Data(json)),
      greeting.type == "hello"
    else { return "the first event is not hello: \(Self.beginning(of: json))" }
    if let mismatch = HelloGreeting.mismatch(
      protocolVersion: greeting.protocolVersion, engineVersion: greeting.engineVersion)
    {
      wentAway(mismatch, retryMilliseconds: RouterLimits.incompatibleRetryMilliseconds)
      connection.close()
      return nil
    }
    guard let event = try? EngineEvent.decode(json), case .hello(let hello) = event.body else {
      return "hello cannot be read: \(Self.beginning(of: json))"
    }
    state = .established(connection)
    backoff.reset()
    statistics.engineConnections += 1
    givesBursts = hello.capabilities?.contains(Hello.burst) == true
    status = EngineStatus(connected: true, message: nil, version: hello.engineVersion)
    logger.info("connected to AudioEngine \(hello.engineVersion), \(hello.sessions.count) sessions play")
    delegate.engineConnected(hello)
    return nil
  }

  /// The connection is gone.
  func closed(_ reason: String, on connection: any EngineConnection) {
    // What an earlier connection still says is no news of this one.
    guard self.connection === connection else { return }
    wentAway(closeReason ?? reason, retryMilliseconds: nil)
    connection.close()
  }

  /// The stream is not the protocol.
  func failed(_ reason: String, on connection: any EngineConnection) {
    statistics.protocolErrors += 1
    closed("protocol error: \(reason)", on: connection)
  }

  private func wentAway(_ reason: String, retryMilliseconds: Int64?) {
    let wasEstablished = isEstablished
    givesBursts = false
    switch state {
    case .idle, .stopped: return
    case .connecting, .greeting, .established: state = .idle
    }
    if status.message != reason {
      status = .away(reason)
      logger.warning("\(reason); trying again")
    }
    if wasEstablished { delegate.engineWentAway() }
    reconnect(afterMilliseconds: retryMilliseconds ?? backoff.next())
  }

  /// As much of an event as a log line can bear.
  private static func beginning(of json: ArraySlice<UInt8>) -> String {
    String(decoding: json.prefix(200), as: UTF8.self)
  }
}
