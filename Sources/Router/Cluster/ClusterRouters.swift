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

/// Announces this Router at NATS and knows the others. Confined to the data plane's loop, which is the client's.
final class ClusterRouters {
  private(set) var routers: [String: RouterHeartbeat] = [:] {
    didSet {
      addresses = Set(
        routers.values.map { ClientID(subject: nil, address: ListenAddress($0.address)?.host) })
    }
  }
  /// The addresses of their heartbeats, from which their connections usually come.
  private var addresses: Set<ClientID> = []
  /// When a request with this Router's secret last came from an address that no heartbeat names: Routers may be known by host
  /// name, or send from other addresses.
  private var confirmedAddresses: [ClientID: NIODeadline] = [:]
  /// Called for each Router that joins, and for each that is gone or is stopping.
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

  /// - Parameter address: at which the others reach this Router.
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

  /// This Router is stopping: the others take over its sessions.
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

  /// Whether other Routers connect from this address.
  func isRouterAddress(_ address: ClientID) -> Bool {
    if addresses.contains(address) { return true }
    guard let confirmed = confirmedAddresses[address] else { return false }
    return NIODeadline.now() - confirmed < .seconds(RouterLimits.confirmedRouterSeconds)
  }

  /// A request from this address had this Router's secret.
  func confirmRouterAddress(_ address: ClientID) {
    guard !addresses.contains(address) else { return }
    let now = NIODeadline.now()
    if confirmedAddresses[address] == nil, confirmedAddresses.count >= RouterLimits.maximumRouters,
      let oldest = confirmedAddresses.min(by: { $0.value < $1.value })?.key
    {
      confirmedAddresses[oldest] = nil
    }
    confirmedAddresses[address] = now
  }

  /// A connection to that Router has failed.
  func suspect(_ router: String) { watches.suspect(router) }

  // MARK: Announcements

  private var payload: ByteBuffer {
    // Strings can always be encoded.
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
    watches.expectReconnections()
  }

  // MARK: The others

  private func heard(_ payload: ByteBuffer) {
    guard
      let heartbeat = try? JSONDecoder().decode(RouterHeartbeat.self, from: Data(payload.readableBytesView))
    else { return logger.debug("a Router's heartbeat cannot be read") }
    let name = heartbeat.router
    guard name != own.router, !isStopped else { return }
    guard !heartbeat.isStopping else { return remove(name, "stops") }
    if routers[name] == nil {
      guard routers.count < RouterLimits.maximumRouters else {
        return logger.warning(
          "ignoring Router \(name): the limit of \(RouterLimits.maximumRouters) Routers is reached")
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
