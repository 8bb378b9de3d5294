import Collections
import NIOCore

/// Who may have a plain HTTP connection: so many of each address, and so many in all. Others wait for a place, in the
/// order in which they came. Confined to the one loop that all connections are on.
final class ConnectionPlaces {
  private struct Row {
    var count = 0
    var waiting: Deque<PlainConnectionHandler> = []
  }

  private let factor: Int
  private let maximumWaiting: Int
  private let maximumCount: Int
  private(set) var count = 0
  private(set) var waitingCount = 0
  private var rows: [ClientID: Row] = [:]
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
    guard rows[address, default: Row()].waiting.count < maximumWaiting else { return .refused }
    rows[address, default: Row()].waiting.append(connection)
    waitingCount += 1
    return .waits
  }

  /// One that was admitted has ended, or is no plain connection any more.
  func leave(_ address: ClientID) {
    count -= 1
    rows[address]?.count -= 1
    admitNext(of: address)
    forgetIfUnused(address)
    // The place in all may be another address's.
    guard waitingCount > 0, count < maximumCount,
      let other = rows.first(where: { !$0.value.waiting.isEmpty && hasRoom(for: $0.key) })?.key
    else { return }
    admitNext(of: other)
  }

  /// One that waits has ended.
  func giveUp(_ connection: PlainConnectionHandler, of address: ClientID) {
    guard let index = rows[address]?.waiting.firstIndex(where: { $0 === connection }) else { return }
    rows[address]?.waiting.remove(at: index)
    waitingCount -= 1
    forgetIfUnused(address)
  }

  private func admitNext(of address: ClientID) {
    guard hasRoom(for: address), let next = rows[address]?.waiting.popFirst() else { return }
    waitingCount -= 1
    take(address)
    next.admit()
  }

  private func hasRoom(for address: ClientID) -> Bool {
    count < maximumCount && rows[address, default: Row()].count < maximum(of: address)
  }

  private func maximum(of address: ClientID) -> Int {
    address.isLoopback ? RouterLimits.loopbackConnections : RouterLimits.addressConnections * factor
  }

  private func take(_ address: ClientID) {
    count += 1
    rows[address, default: Row()].count += 1
  }

  private func forgetIfUnused(_ address: ClientID) {
    if let row = rows[address], row.count == 0, row.waiting.isEmpty { rows[address] = nil }
  }
}
