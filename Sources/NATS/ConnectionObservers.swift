/// Observers of a client's connection, notified in the order of their IDs. Confined to the loop. A class, since
/// an observer may remove itself when it is notified.
final class ConnectionObservers {
  private var changes: [UInt64: (NATSConnectionState) -> Void] = [:]
  private var serverLosses: [UInt64: () -> Void] = [:]

  func add(_ id: UInt64, _ observer: @escaping (NATSConnectionState) -> Void) { changes[id] = observer }

  func addServerLossObserver(_ id: UInt64, _ observer: @escaping () -> Void) { serverLosses[id] = observer }

  func remove(_ id: UInt64) {
    changes[id] = nil
    serverLosses[id] = nil
  }

  /// Observers that one of them adds are not notified.
  func notify(_ state: NATSConnectionState) {
    for id in changes.keys.sorted() { changes[id]?(state) }
  }

  func notifyServerLoss() {
    for id in serverLosses.keys.sorted() { serverLosses[id]?() }
  }
}

/// How a client stands with its servers.
public enum NATSConnectionState: Sendable, Equatable {
  /// Subscriptions are in effect.
  case connected(server: String)
  case disconnected(reason: String)
}
