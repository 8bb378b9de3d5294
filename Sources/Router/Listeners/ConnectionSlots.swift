import Collections
import NIOCore

/// Limits plain HTTP connections: so many of each address, and so many in all. Others wait for a slot, those of one
/// address in the order in which they came. Confined to the one loop that all connections are on.
final class ConnectionSlots {
  private struct AddressQueue {
    var count = 0
    var waiting: Deque<PlainConnectionHandler> = []
  }

  private let factor: Int
  private let maximumWaiting: Int
  private let maximumCount: Int
  private(set) var count = 0
  private(set) var waitingCount = 0
  private var queues: [ClientID: AddressQueue] = [:]
  /// Whether other Routers come from an address, which bring everybody as a reverse proxy does.
  var isRouter: (ClientID) -> Bool = { _ in false }
  /// Told whose connection had to wait.
  var onFull: (ClientID) -> Void = { _ in }

  /// - Parameter factor: how many times the usual limits of an address these are.
  init(factor: Int, maximumCount: Int = RouterLimits.maximumPlainConnections) {
    self.factor = factor
    maximumWaiting = RouterLimits.addressConnectionsWaiting * factor
    self.maximumCount = maximumCount
  }

  enum Admission {
    case admitted, waits, refused
  }

  func enter(_ connection: PlainConnectionHandler, of address: ClientID) -> Admission {
    if hasRoom(for: address) {
      take(address)
      return .admitted
    }
    onFull(address)
    guard queues[address, default: AddressQueue()].waiting.count < maximumWaiting else { return .refused }
    queues[address, default: AddressQueue()].waiting.append(connection)
    waitingCount += 1
    return .waits
  }

  /// One that was admitted has ended, or is no plain connection any more.
  func leave(_ address: ClientID) {
    count -= 1
    queues[address]?.count -= 1
    admitNext(of: address)
    forgetIfUnused(address)
    // The slot in all may be another address's.
    guard waitingCount > 0, count < maximumCount,
      let other = queues.first(where: { !$0.value.waiting.isEmpty && hasRoom(for: $0.key) })?.key
    else { return }
    admitNext(of: other)
  }

  /// One that waits has ended.
  func giveUp(_ connection: PlainConnectionHandler, of address: ClientID) {
    guard let index = queues[address]?.waiting.firstIndex(where: { $0 === connection }) else { return }
    queues[address]?.waiting.remove(at: index)
    waitingCount -= 1
    forgetIfUnused(address)
  }

  private func admitNext(of address: ClientID) {
    guard hasRoom(for: address), let next = queues[address]?.waiting.popFirst() else { return }
    waitingCount -= 1
    take(address)
    next.admit()
  }

  private func hasRoom(for address: ClientID) -> Bool {
    count < maximumCount && queues[address, default: AddressQueue()].count < maximum(of: address)
  }

  private func maximum(of address: ClientID) -> Int {
    address.isLoopback || isRouter(address)
      ? RouterLimits.loopbackConnections : RouterLimits.addressConnections * factor
  }

  private func take(_ address: ClientID) {
    count += 1
    queues[address, default: AddressQueue()].count += 1
  }

  private func forgetIfUnused(_ address: ClientID) {
    if let queue = queues[address], queue.count == 0, queue.waiting.isEmpty { queues[address] = nil }
  }
}
