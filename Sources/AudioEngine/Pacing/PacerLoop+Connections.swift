import ServiceSupport
import WireProtocol

/// What goes to the routers. Runs on the pacer's thread.
extension PacerLoop {
  /// One connection and what it has not taken yet.
  struct Link {
    let connection: RouterConnection
    var outbox = RouterOutbox()
    /// Sessions that `hello` had no room for and that it is still to be told of.
    var unlisted: ArraySlice<SessionID>
  }

  private static let sessionsListedARound = 32

  func connect(_ connection: RouterConnection) {
    // What has been put together so far was before it came: its first message is hello.
    flush()
    let ids = Array(sessions.keys)
    links.append(Link(connection: connection, unlisted: ids.dropFirst(WireLimits.maximumHelloSessions)))
    let hello = Hello(
      startedAtMilliseconds: startedAtMilliseconds, nowNanoseconds: MonotonicClock.nowNanoseconds,
      limits: limits,
      sessions: ids.prefix(WireLimits.maximumHelloSessions).compactMap { sessions[$0].map(snapshot) })
    batch.append(EngineEvent(.hello(hello)), to: connection.id)
    pacer.statistics.update { $0.connections = links.count }
  }

  /// Tells new connections of further sessions, a few a round, so that nobody's packet is late for it.
  func listSessions() {
    for index in links.indices where !links[index].unlisted.isEmpty {
      for id in links[index].unlisted.prefix(Self.sessionsListedARound) {
        guard let session = sessions[id] else { continue }
        batch.append(
          EngineEvent(.status(snapshot(session)), sessionID: id), to: links[index].connection.id)
      }
      links[index].unlisted = links[index].unlisted.dropFirst(Self.sessionsListedARound)
    }
  }

  func disconnect(_ id: RouterConnection.ID) {
    guard let index = links.firstIndex(where: { $0.connection.id == id }) else { return }
    links[index].connection.disconnect()
    links.remove(at: index)
    pacer.statistics.update { $0.connections = links.count }
  }

  func flush() {
    var failed: [RouterConnection.ID] = []
    var waitingByteCount = 0
    let now = MonotonicClock.nowNanoseconds
    for index in links.indices {
      let connection = links[index].connection
      guard !batch.isEmpty || !links[index].outbox.isEmpty else { continue }
      let result =
        batch.isEmpty
        ? links[index].outbox.flush(write: connection.write)
        : links[index].outbox.send(batch, to: connection.id, nowNanoseconds: now, write: connection.write)
      let dropped = links[index].outbox.takeDroppedCount()
      if dropped > 0 { pacer.statistics.update { $0.droppedPackets += dropped } }
      let lost = links[index].outbox.takeLostAnswerCount()
      if lost > 0 { pacer.statistics.update { $0.lostAnswers += lost } }
      connection.setBehind(links[index].outbox.isBehind)
      if result == .failed { failed.append(connection.id) }
      waitingByteCount += links[index].outbox.byteCount
    }
    batch.removeAll()
    if waitingByteCount != routerQueueBytes {
      routerQueueBytes = waitingByteCount
      pacer.statistics.update { $0.routerQueueBytes = waitingByteCount }
    }
    failed.forEach(disconnect)
  }
}
