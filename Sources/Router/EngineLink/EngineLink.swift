import Logging
import NIOCore
import NIOPosix
import ServiceSupport
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

/// The connection to the engine: made, greeted, kept, and made again. Confined to the loop.
final class EngineLink {
  private enum State {
    case idle
    case connecting
    /// Connected, and hello has not come yet.
    case greeting(any Channel)
    case established(any Channel)
    case stopped
  }

  private let path: String
  private let socketBufferByteCount: Int
  private let eventLoop: any EventLoop
  private let logger: Logger
  private let statistics: RouterStatistics
  private let store: SessionStore
  private unowned let delegate: any EngineLinkDelegate
  private var state = State.idle
  /// What the engine has said before it closes.
  private var closeReason: String?
  private var backoff = ReconnectBackoff()
  private(set) var status = EngineStatus.away("no engine has been connected yet")

  init(
    path: String, socketBufferByteCount: Int, eventLoop: any EventLoop, store: SessionStore,
    delegate: any EngineLinkDelegate, logger: Logger
  ) {
    self.path = path
    self.socketBufferByteCount = socketBufferByteCount
    self.eventLoop = eventLoop
    self.store = store
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
    let channel = self.channel
    state = .stopped
    channel?.close(promise: nil)
  }

  /// Writes one command.
  func send(_ command: EngineCommand) throws(RequestError) {
    guard case .established(let channel) = state else {
      throw RequestError(
        .engineUnavailable, status.message ?? "no engine is connected",
        hint: "the Router keeps trying; GET /ready says when it is back")
    }
    guard channel.isWritable else {
      throw RequestError(.engineUnavailable, "the engine does not read its commands", hint: "try again")
    }
    channel.writeAndFlush(ByteBuffer(bytes: command.encodedLine()), promise: nil)
  }

  private var channel: (any Channel)? {
    switch state {
    case .greeting(let channel), .established(let channel): channel
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
    let link = NIOLoopBound(self, eventLoop: eventLoop)
    ClientBootstrap(group: eventLoop)
      .channelOption(
        .writeBufferWaterMark,
        value: .init(
          low: RouterLimits.engineOutboundByteCount / 2, high: RouterLimits.engineOutboundByteCount)
      )
      .channelOption(.socketOption(.so_sndbuf), value: SocketOptionValue(socketBufferByteCount))
      .channelOption(.socketOption(.so_rcvbuf), value: SocketOptionValue(socketBufferByteCount))
      .channelInitializer { channel in
        channel.eventLoop.makeCompletedFuture {
          let handler = EngineLinkHandler(link: link.value, packets: link.value.store.packets)
          try channel.pipeline.syncOperations.addHandler(handler)
          link.value.opened(channel)
        }
      }
      .connect(unixDomainSocketPath: path)
      .assumeIsolated()
      .whenFailure { [weak self] error in
        guard let self else { return }
        wentAway(
          "cannot reach the engine at \(path): \(Self.describe(error))", retryMilliseconds: nil)
      }
  }

  private func opened(_ channel: any Channel) {
    guard case .connecting = state else { return }
    state = .greeting(channel)
    closeReason = nil
    eventLoop.assumeIsolated().scheduleTask(in: .seconds(RouterLimits.helloSeconds)) { [weak self] in
      guard let self, case .greeting(let waiting) = state, waiting === channel else { return }
      let waited = RouterLimits.helloSeconds
      failed("the engine at \(path) accepted and said no hello for \(waited) s", on: channel)
    }
  }

  /// Takes one event.
  ///
  /// - Returns: what is wrong with it, where the connection cannot be kept.
  func received(event json: ArraySlice<UInt8>) -> String? {
    statistics.eventsReceived += 1
    if case .greeting(let channel) = state { return greeted(json, channel) }
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

  private func greeted(_ json: ArraySlice<UInt8>, _ channel: any Channel) -> String? {
    guard let greeting = try? JSONDecoder().decode(HelloGreeting.self, from: Data(json)),
      greeting.type == "hello"
    else { return "the first event is not hello: \(Self.beginning(of: json))" }
    if let mismatch = HelloGreeting.mismatch(
      protocolVersion: greeting.protocolVersion, engineVersion: greeting.engineVersion)
    {
      wentAway(mismatch, retryMilliseconds: RouterLimits.incompatibleRetryMilliseconds)
      channel.close(promise: nil)
      return nil
    }
    guard let event = try? EngineEvent.decode(json), case .hello(let hello) = event.body else {
      return "hello cannot be read: \(Self.beginning(of: json))"
    }
    state = .established(channel)
    backoff.reset()
    statistics.engineConnections += 1
    givesBursts = hello.capabilities?.contains(Hello.burst) == true
    status = EngineStatus(connected: true, message: nil, version: hello.engineVersion)
    logger.info("connected to AudioEngine \(hello.engineVersion), \(hello.sessions.count) sessions play")
    delegate.engineConnected(hello)
    return nil
  }

  /// The connection is gone.
  func closed(_ reason: String, on channel: any Channel) {
    // What an earlier connection still says is no news of this one.
    guard self.channel === channel else { return }
    wentAway(closeReason ?? reason, retryMilliseconds: nil)
    channel.close(promise: nil)
  }

  /// The stream is not the protocol.
  func failed(_ reason: String, on channel: any Channel) {
    statistics.protocolErrors += 1
    closed("protocol error: \(reason)", on: channel)
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

  private static func describe(_ error: any Error) -> String {
    guard let error = error as? IOError else { return "\(error)" }
    return errorText(error.errnoCode)
  }
}
