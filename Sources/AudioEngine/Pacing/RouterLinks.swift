import Glibc

/// The routers' connections, each with what it has not taken yet. Used by the pacer's thread alone.
struct RouterLinks {
  private struct Link {
    let connection: RouterConnection
    var outbox = RouterOutbox()
  }

  private let statistics: PacerStatistics
  private var links: [Link] = []
  private var waitingByteCount = 0

  init(statistics: PacerStatistics) { self.statistics = statistics }

  mutating func add(_ connection: RouterConnection) {
    links.append(Link(connection: connection))
    statistics.update { $0.connections = links.count }
  }

  mutating func remove(_ id: RouterConnection.ID) {
    guard let index = links.firstIndex(where: { $0.connection.id == id }) else { return }
    links[index].connection.disconnect()
    links.remove(at: index)
    statistics.update { $0.connections = links.count }
  }

  /// Appends those that are to be written to as soon as they take something.
  func appendBlocked(to descriptors: inout [pollfd]) {
    for link in links where !link.outbox.isEmpty {
      descriptors.append(pollfd(fd: link.connection.descriptor, events: Int16(POLLOUT), revents: 0))
    }
  }

  /// Sends a batch to every router that it is for, and what they have not taken before.
  ///
  /// - Returns: the connections that failed.
  mutating func send(_ batch: MessageBatch, now: UInt64) -> [RouterConnection.ID] {
    var failed: [RouterConnection.ID] = []
    var waitingByteCount = 0
    for index in links.indices {
      let connection = links[index].connection
      guard !batch.isEmpty || !links[index].outbox.isEmpty else { continue }
      let result =
        batch.isEmpty
        ? links[index].outbox.flush(write: connection.write)
        : links[index].outbox.send(batch, to: connection.id, nowNanoseconds: now, write: connection.write)
      let dropped = links[index].outbox.takeDroppedCount()
      if dropped > 0 { statistics.update { $0.droppedPackets += dropped } }
      let lost = links[index].outbox.takeLostAnswerCount()
      if lost > 0 { statistics.update { $0.lostAnswers += lost } }
      connection.setBehind(links[index].outbox.isBehind)
      if result == .failed { failed.append(connection.id) }
      waitingByteCount += links[index].outbox.byteCount
    }
    if waitingByteCount != self.waitingByteCount {
      self.waitingByteCount = waitingByteCount
      statistics.update { $0.routerQueueBytes = waitingByteCount }
    }
    return failed
  }
}
