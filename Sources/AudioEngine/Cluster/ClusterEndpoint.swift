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
  private var aloneSince: NIODeadline?
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
    logger.info("routers reach this engine through NATS by the name \(id)")
    client.start()
    beat()
  }

  /// The engine is about to stop: nothing more is to be placed on it.
  func drain() {
    isStopping = true
    announce()
  }

  private func observed(_ state: NATSConnectionState) {
    switch state {
    case .connected: announce()
    case .disconnected(let reason):
      // What was on its way may be lost, and nobody would say so.
      for attachment in attachments.values { attachment.end("no connection to NATS: \(reason)") }
    }
  }

  // MARK: Heartbeats

  private func beat() {
    let interval = TimeAmount.milliseconds(ClusterTiming.heartbeatMilliseconds)
    client.eventLoop.assumeIsolated().scheduleTask(in: interval) { [weak self] in
      guard let self else { return }
      announce()
      for attachment in attachments.values { attachment.runHousekeeping() }
      stopIfAbandoned()
      beat()
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
    // Words and finite numbers, which can always be encoded.
    return ByteBuffer(bytes: (try? JSONEncoder().encode(heartbeat)) ?? Data())
  }

  /// Where routers have been out of reach for so long, another engine plays the sessions by now.
  private func stopIfAbandoned() {
    guard attachments.isEmpty else {
      aloneSince = nil
      return
    }
    let since = aloneSince ?? .now()
    aloneSince = since
    guard .now() - since >= .milliseconds(ClusterTiming.abandonedMilliseconds) else { return }
    aloneSince = nil
    stopSessions()
  }

  // MARK: Routers

  private func received(_ message: NATSMessage) {
    let router = ClusterSubject.sender(message.subject)
    if let attachment = attachments[router] { return attachment.received(message.payload) }
    // It has not heard of its attachment's end: this engine had no connection to say so.
    client.refuse(message.payload, to: ClusterSubject.toRouter(router, from: id))
  }

  private func attach(_ message: NATSMessage) {
    guard let reply = message.reply,
      let request = try? JSONDecoder().decode(
        AttachmentRequest.self, from: Data(message.payload.readableBytesView)),
      request.router.allSatisfy({ $0.isASCII && ($0.isLetter || $0.isNumber) }), !request.router.isEmpty
    else { return logger.warning("a router's request cannot be read") }
    // What it had before is of no use to it any more.
    attachments[request.router]?.end(nil)
    let attachment = RouterAttachment(request, engine: id, client: client, logger: logger)
    attachments[request.router] = attachment
    attachment.onEnd = { [weak self, weak attachment] in
      guard let self, attachments[request.router] === attachment else { return }
      attachments[request.router] = nil
    }
    // Before anything that the engine writes.
    client.publish(heartbeat, to: reply)
    do {
      try attachment.start(admit: server.admit)
    } catch {
      attachment.end("\(error)")
    }
  }
}
