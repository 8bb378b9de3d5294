import Synchronization

/// What a client has done since its start.
public struct NATSStatistics: Sendable, Equatable {
  public var publishedMessages = 0
  public var publishedBytes = 0
  /// Publications while too much waited to be sent.
  public var droppedWhileFull = 0
  /// Publications without a connection.
  public var droppedWhileDisconnected = 0
  /// Publications larger than the server takes, or to no subject.
  public var droppedAsInvalid = 0
  public var receivedMessages = 0
  public var receivedBytes = 0
  /// Connections that a server accepted.
  public var connections = 0
  /// Errors (`-ERR`) that servers told.
  public var serverErrors = 0

  init() {}
}

/// The counters, added to on any thread.
final class StatisticsCounters: Sendable {
  let publishedMessages = Atomic(0)
  let publishedBytes = Atomic(0)
  let droppedWhileFull = Atomic(0)
  let droppedWhileDisconnected = Atomic(0)
  let droppedAsInvalid = Atomic(0)
  let receivedMessages = Atomic(0)
  let receivedBytes = Atomic(0)
  let connections = Atomic(0)
  let serverErrors = Atomic(0)

  func snapshot() -> NATSStatistics {
    var statistics = NATSStatistics()
    statistics.publishedMessages = publishedMessages.load(ordering: .relaxed)
    statistics.publishedBytes = publishedBytes.load(ordering: .relaxed)
    statistics.droppedWhileFull = droppedWhileFull.load(ordering: .relaxed)
    statistics.droppedWhileDisconnected = droppedWhileDisconnected.load(ordering: .relaxed)
    statistics.droppedAsInvalid = droppedAsInvalid.load(ordering: .relaxed)
    statistics.receivedMessages = receivedMessages.load(ordering: .relaxed)
    statistics.receivedBytes = receivedBytes.load(ordering: .relaxed)
    statistics.connections = connections.load(ordering: .relaxed)
    statistics.serverErrors = serverErrors.load(ordering: .relaxed)
    return statistics
  }
}

extension Atomic<Int> {
  func add(_ amount: Int) { wrappingAdd(amount, ordering: .relaxed) }
}
