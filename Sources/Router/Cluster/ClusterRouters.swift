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

/// Which other Routers there are at NATS, and that this one is there. Confined to the data plane's loop, which is the
/// client's.
final class ClusterRouters {
  private(set) var routers: [String: RouterHeartbeat] = [:] {
    didSet {
      addresses = Set(
        routers.values.map { ClientID(subject: nil, address: ListenAddress($0.address)?.host) })
    }
  }
  /// Where their connections come from, as far as they are reached at the same addresses.
  private var addresses: Set<ClientID> = []
  /// When a Router's secret last came from elsewhere: they are reached by names, or come from other addresses.
  private var proven: [ClientID: NIODeadline] = [:]
  /// Told each Router that has come, and each that is gone or stops.
  var onJoined: (String) -> Void = { _ in }
  var onLeft: (String) -> Void = { _ in }
  /// Whether sessions depend on a Router.
  var isHome: (String) -> Bool = { _ in false }

  private let client: NATSClient
  private let logger: Logger
  private var own: RouterHeartbeat
  private lazy var watches = MemberWatches(
    client: client, subject: ClusterSubject.routerPing, isBusy: { [unowned self] in isHome($0) },
    onGone: { [unowned self] in remove($0, "is gone") })
  private var subscriptions: [NATSSubscription] = []
  private var isStopped = false

  init(_ own: RouterHeartbeat, client: NATSClient, logger: Logger) {
    self.own = own
    self.client = client
    self.logger = logger
  }

  /// - Parameter address: where others reach this Router.
  func start(address: String) throws(NATSError) {
    own.address = address
    let context = NIOLoopBound(self, eventLoop: client.eventLoop)
    subscriptions = [
      try client.subscribe(to: ClusterSubject.routerHeartbeats) { context.value.heard($0.payload) },
      try client.subscribe(to: ClusterSubject.routerDiscovery) { _ in context.value.announce() },
      try client.subscribe(to: ClusterSubject.routerPing(own.router)) { context.value.answer($0) },
      client.observe { context.value.observed($0) },
    ]
    watches.start()
    announceRegularly()
  }

  /// This Router stops: the others take over its sessions.
  func drain() {
    own.isStopping = true
    announce()
  }

  func stop() {
    isStopped = true
    for subscription in subscriptions { subscription.cancel() }
    subscriptions = []
    watches.stop()
  }

  /// Whether other Routers come from there.
  func comeFrom(_ address: ClientID) -> Bool {
    if addresses.contains(address) { return true }
    guard let proven = proven[address] else { return false }
    return NIODeadline.now() - proven < .seconds(RouterLimits.provenRouterSeconds)
  }

  /// What came from there had this Router's secret.
  func proved(_ address: ClientID) {
    guard !addresses.contains(address) else { return }
    let now = NIODeadline.now()
    if proven[address] == nil, proven.count >= RouterLimits.maximumRouters,
      let oldest = proven.min(by: { $0.value < $1.value })?.key
    {
      proven[oldest] = nil
    }
    proven[address] = now
  }

  /// A connection to that Router has failed.
  func suspect(_ router: String) { watches.suspect(router) }

  // MARK: What this Router says

  private var payload: ByteBuffer {
    // Words, which can always be encoded.
    ByteBuffer(bytes: (try? JSONEncoder().encode(own)) ?? Data())
  }

  private func announce() { client.publish(payload, to: ClusterSubject.routerHeartbeats) }

  private func answer(_ ping: NATSMessage) {
    if let reply = ping.reply { client.publish(payload, to: reply) }
  }

  private func announceRegularly() {
    let interval = TimeAmount.milliseconds(ClusterTiming.heartbeatMilliseconds)
    client.eventLoop.assumeIsolated().scheduleTask(in: interval) { [weak self] in
      guard let self, !isStopped else { return }
      announce()
      announceRegularly()
    }
  }

  private func observed(_ state: NATSConnectionState) {
    guard case .connected = state else { return }
    announce()
    client.publish(ByteBuffer(), to: ClusterSubject.routerDiscovery)
    watches.expectReturn()
  }

  // MARK: What the others say

  private func heard(_ payload: ByteBuffer) {
    guard
      let heartbeat = try? JSONDecoder().decode(RouterHeartbeat.self, from: Data(payload.readableBytesView))
    else { return logger.debug("a Router's heartbeat cannot be read") }
    let name = heartbeat.router
    guard name != own.router, !isStopped else { return }
    guard !heartbeat.isStopping else { return remove(name, "stops") }
    if routers[name] == nil {
      guard routers.count < RouterLimits.maximumRouters else {
        return logger.warning("there are over \(RouterLimits.maximumRouters) Routers: \(name) is not heard")
      }
      logger.info("the Router \(name) at \(heartbeat.address) has announced itself")
      routers[name] = heartbeat
      watches.add(name)
      onJoined(name)
    }
    if routers[name] != heartbeat { routers[name] = heartbeat }
    watches.heard(name)
  }

  private func remove(_ name: String, _ why: String) {
    watches.remove(name)
    guard routers.removeValue(forKey: name) != nil else { return }
    logger.warning("the Router \(name) \(why): its sessions are taken over")
    onLeft(name)
  }
}
