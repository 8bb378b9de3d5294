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

/// Finds the engines at NATS, keeps the Router attached to them, and reports lost ones. Confined to the data plane's loop,
/// which is the client's.
final class ClusterEngines {
  /// How long engines have to announce themselves after the Router's start, before sessions that none of them plays are
  /// restarted.
  private static let discoveryMilliseconds: Int64 = 1_500

  private struct Row {
    let engine: RoutedEngine
    let transport: NATSEngineTransport
  }

  private let machine = MachineID.current
  private let plane: DataPlane
  private var router: String { plane.id }
  private let client: NATSClient
  private let logger: Logger
  private var rows: [String: Row] = [:]
  private lazy var watches = MemberWatches(
    client: client, subject: ClusterSubject.ping, isBusy: { [unowned self] in isBusy($0) },
    onGone: { [unowned self] in removeEngine($0) })
  private var subscriptions: [NATSSubscription] = []
  private var lastNumber: UInt32 = 0
  /// Whether the homes are loaded, so that engines' reports can be matched to sessions.
  private var isAttaching = false
  private var isStopped = false

  init(plane: DataPlane, client: NATSClient, logger: Logger) {
    self.plane = plane
    self.client = client
    self.logger = logger
  }

  func start() throws(NATSError) {
    let context = NIOLoopBound(self, eventLoop: client.eventLoop)
    subscriptions = [
      try client.subscribe(to: ClusterSubject.heartbeats) { context.value.heard($0.payload) },
      try client.subscribe(to: ClusterSubject.toRouter(router, from: "*")) { context.value.received($0) },
      client.observe { context.value.observed($0) },
    ]
    watches.start()
  }

  /// Starts to attach to engines.
  func attach() {
    guard !isAttaching else { return }
    isAttaching = true
    plane.fleet.absence = "no engine has announced itself at NATS"
    client.publish(ByteBuffer(), to: ClusterSubject.discovery)
    let wait = TimeAmount.milliseconds(Self.discoveryMilliseconds)
    client.eventLoop.assumeIsolated().scheduleTask(in: wait) { [weak self] in self?.plane.enginesAreKnown() }
  }

  func stop() {
    isStopped = true
    for subscription in subscriptions { subscription.cancel() }
    subscriptions = []
    watches.stop()
  }

  // MARK: The connection to NATS

  private func observed(_ state: NATSConnectionState) {
    switch state {
    case .connected:
      if isAttaching { plane.fleet.absence = "no engine has announced itself at NATS" }
      client.publish(ByteBuffer(), to: ClusterSubject.discovery)
      watches.expectReconnections()
    case .disconnected(let reason):
      plane.fleet.absence = "not connected to NATS: \(reason)"
      for row in rows.values { row.transport.drop("not connected to NATS: \(reason)") }
    }
  }

  // MARK: Messages of engines

  private func heard(_ payload: ByteBuffer) {
    guard
      let heartbeat = try? JSONDecoder().decode(EngineHeartbeat.self, from: Data(payload.readableBytesView))
    else { return logger.debug("an engine's heartbeat cannot be read") }
    let name = heartbeat.engine
    if rows[name] == nil {
      // An engine that is stopping is not attached to.
      guard !heartbeat.isStopping, isAttaching, !isStopped else { return }
      add(heartbeat)
    }
    watches.heard(name)
    guard let row = rows[name] else { return }
    // An engine that lost its connection briefly has dropped the attachment, and answers the idle frame with close.
    row.transport.keepAlive()
    let engine = row.engine
    engine.load = heartbeat.load
    engine.isFull = false
    if heartbeat.isStopping { plane.engineStops(engine) }
  }

  private func add(_ heartbeat: EngineHeartbeat) {
    let name = heartbeat.engine
    lastNumber += 1
    let transport = NATSEngineTransport(engine: name, router: router, client: client)
    let engine = RoutedEngine(
      EngineNumber(value: lastNumber), transport: transport, plane: plane,
      sharesClock: heartbeat.machine != nil && heartbeat.machine == machine)
    rows[name] = Row(engine: engine, transport: transport)
    watches.add(name)
    logger.info("the engine \(name) has announced itself")
    plane.fleet.add(engine)
    engine.link.start()
  }

  private func received(_ message: NATSMessage) {
    let name = ClusterSubject.sender(message.subject)
    let payload = message.payload
    guard let row = rows[name], row.transport.received(payload, now: DataPlane.nowMilliseconds) else {
      return client.closeAttachment(of: payload, to: ClusterSubject.toEngine(name, from: router))
    }
    watches.heard(name)
  }

  // MARK: Lost engines

  /// An engine without an attachment counts as busy: it may have just died.
  private func isBusy(_ name: String) -> Bool {
    guard let row = rows[name] else { return false }
    return !row.engine.isEstablished || row.transport.hasData(now: DataPlane.nowMilliseconds)
  }

  private func removeEngine(_ name: String) {
    guard let row = rows.removeValue(forKey: name) else { return }
    logger.warning("engine \(name) is gone: its sessions resume on other engines")
    row.transport.drop("the engine \(name) is gone")
    row.engine.link.stop()
    plane.engineIsGone(row.engine)
  }
}
