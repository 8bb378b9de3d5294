/// The client's subscriptions, each with the connection that has it: a new connection is sent all of them. Confined to the
/// loop. A class, since a callback may cancel its own subscription.
final class Subscriptions {
  private struct Subscription {
    var subject: String
    var queue: String?
    var onMessage: (NATSMessage) -> Void
    /// Nil while no connection has it.
    var connection: UInt64?
  }

  private var subscriptions: [UInt64: Subscription] = [:]

  /// - Parameter connection: the one that has it already.
  func add(
    _ id: UInt64, to subject: String, queue: String?, connection: UInt64?,
    _ onMessage: @escaping (NATSMessage) -> Void
  ) {
    subscriptions[id] = Subscription(
      subject: subject, queue: queue, onMessage: onMessage, connection: connection)
  }

  /// - Returns: the connection that has it.
  func remove(_ id: UInt64) -> UInt64? { subscriptions.removeValue(forKey: id)?.connection }

  func deliver(_ message: NATSMessage, to id: UInt64) { subscriptions[id]?.onMessage(message) }

  /// Those that a connection does not have yet.
  func unsent(on connection: UInt64) -> [UInt64] {
    subscriptions.keys.filter { subscriptions[$0]?.connection != connection }
  }

  /// The SUB line of one.
  func line(of id: UInt64) -> String? {
    subscriptions[id].map { Frames.subscription($0.subject, queue: $0.queue, id: id) }
  }

  /// - Parameter connection: nil where it could not be sent.
  func markSent(_ id: UInt64, on connection: UInt64?) { subscriptions[id]?.connection = connection }
}
