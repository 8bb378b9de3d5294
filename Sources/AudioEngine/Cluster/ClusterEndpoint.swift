import Logging
import NATS
import NIOCore
import ServiceSupport
import WireProtocol

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// Where routers reach this engine through NATS: says once a second that it is there, and attaches who asks. Confined to
/// the client's loop.
final class ClusterEndpoint {
  private let id: String
  private let machine = MachineID.current
  private let client: NATSClient
  private let server: PacketServer
  private let logger: Logger
  /// See `EngineHeartbeat.load`.
  private let load: @Sendable () -> Double
  /// Ends everything that plays.
  private let stopSessions: @Sendable () -> Void
  private var attachments: [String: RouterAttachment] = [:]
  private var subscriptions: [NATSSubscription] = []
  /// Since when no router is attached; nil while one is, and after the sessions have been stopped.
  private var noRoutersSince: NIODeadline?
  private var isStopping = false

  init(
    client: NATSClient, server: PacketServer, logger: Logger, load: @escaping @Sendable () -> Double,
    stopSessions: @escaping @Sendable () -> Void
  ) {
    id = ClusterSubject.newID(prefix: "e")
    self.client = client
    self.server = server
    self.logger = logger
    self.load = load
    self.stopSessions = stopSessions
  }

  func start() throws(NATSError) {
    let context = NIOLoopBound(self, eventLoop: client.eventLoop)
    subscriptions = [
      try client.subscribe(to: ClusterSubject.open(id)) { context.value.attach($0) },
      try client.subscribe(to: ClusterSubject.ping(id)) { context.value.answer($0) },
      try client.subscribe(to: ClusterSubject.discovery) { _ in context.value.announce() },
      try client.subscribe(to: ClusterSubject.toEngine(id, from: "*")) { context.value.received($0) },
      client.observe { context.value.observed($0) },
    ]
    logger.info("this engine's ID at NATS is \(id)")
    client.start()
    sendHeartbeats()
  }

  /// The engine is about to stop: no more sessions are to be placed on it.
  func drain() {
    isStopping = true
    announce()
  }

  private func observed(_ state: NATSConnectionState) {
    switch state {
    case .connected: announce()
    case .disconnected(let reason):
      // Messages under way may be lost without notice.
      for attachment in attachments.values { attachment.end("no connection to NATS: \(reason)") }
    }
  }

  // MARK: Heartbeats

  private func sendHeartbeats() {
    let interval = TimeAmount.milliseconds(ClusterTiming.heartbeatMilliseconds)
    client.eventLoop.assumeIsolated().scheduleTask(in: interval) { [weak self] in
      guard let self else { return }
      announce()
      for attachment in attachments.values { attachment.runHousekeeping() }
      stopIfAbandoned()
      sendHeartbeats()
    }
  }

  private func announce() {
    client.publish(heartbeat, to: ClusterSubject.heartbeats)
  }

  private func answer(_ ping: NATSMessage) {
    if let reply = ping.reply { client.publish(heartbeat, to: reply) }
  }

  private var heartbeat: ByteBuffer {
    let heartbeat = EngineHeartbeat(
      engine: id, machine: machine, load: load(), isStopping: isStopping)
    // Strings and finite numbers can always be encoded.
    return ByteBuffer(bytes: (try? JSONEncoder().encode(heartbeat)) ?? Data())
  }

  /// Stops the sessions after a long time without routers: other engines play them by then.
  private func stopIfAbandoned() {
    guard attachments.isEmpty else {
      noRoutersSince = nil
      return
    }
    let since = noRoutersSince ?? .now()
    noRoutersSince = since
    guard .now() - since >= .milliseconds(ClusterTiming.abandonedMilliseconds) else { return }
    noRoutersSince = nil
    stopSessions()
  }

  // MARK: Routers

  private func received(_ message: NATSMessage) {
    let router = ClusterSubject.sender(message.subject)
    if let attachment = attachments[router] { return attachment.received(message.payload) }
    // The router does not know that its attachment has ended: this engine was disconnected then.
    client.closeAttachment(of: message.payload, to: ClusterSubject.toRouter(router, from: id))
  }

  private func attach(_ message: NATSMessage) {
    guard let reply = message.reply,
      let request = try? JSONDecoder().decode(
        AttachmentRequest.self, from: Data(message.payload.readableBytesView)),
      request.router.allSatisfy({ $0.isASCII && ($0.isLetter || $0.isNumber) }), !request.router.isEmpty
    else { return logger.warning("an attachment request cannot be decoded") }
    // It replaces the router's former attachment.
    attachments[request.router]?.end(nil)
    let attachment = RouterAttachment(request, engine: id, client: client, logger: logger)
    attachments[request.router] = attachment
    attachment.onEnd = { [weak self, weak attachment] in
      guard let self, attachments[request.router] === attachment else { return }
      attachments[request.router] = nil
    }
    // Published before anything that the engine writes.
    client.publish(heartbeat, to: reply)
    do {
      try attachment.start(admit: server.admit)
    } catch {
      attachment.end("\(error)")
    }
  }
}
