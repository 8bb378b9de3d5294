import WireProtocol

/// What new routers are told.
extension SessionDirector {
  struct ConnectedRouter {
    let id: RouterConnection.ID
    /// Sessions that `hello` had no room for and that it is still to be told of.
    var unlisted: ArraySlice<SessionID>
    /// Whether it has been told that it knows all.
    var isListed: Bool
  }

  /// So few that a router that connects makes nobody's packet late.
  private static let sessionsListedPerStep = 16

  /// Greets a router. The output must be empty: `hello` is the first message on a connection.
  package func connect(_ id: RouterConnection.ID, now: UInt64) {
    let ids = sessions.filter { !$0.value.isStandby }.map(\.key)
    let limit = WireLimits.maximumHelloSessions
    routers.append(
      ConnectedRouter(id: id, unlisted: ids.dropFirst(limit), isListed: ids.count < limit))
    let hello = Hello(
      startedAtMilliseconds: startedAtMilliseconds, nowNanoseconds: now, limits: limits,
      sessions: ids.prefix(limit).compactMap { sessions[$0].map(snapshot) })
    output.append(EngineEvent(.hello(hello)), to: id)
  }

  package func disconnect(_ id: RouterConnection.ID) { routers.removeAll { $0.id == id } }

  /// Tells new routers of further sessions, a few a step, so that nobody's packet is late for it.
  func listSessions() {
    for index in routers.indices where !routers[index].isListed {
      for id in routers[index].unlisted.prefix(Self.sessionsListedPerStep) {
        guard let session = sessions[id], !session.isStandby else { continue }
        output.append(EngineEvent(.status(snapshot(session)), sessionID: id), to: routers[index].id)
      }
      routers[index].unlisted = routers[index].unlisted.dropFirst(Self.sessionsListedPerStep)
      guard routers[index].unlisted.isEmpty else { continue }
      routers[index].isListed = true
      output.append(EngineEvent(.listed), to: routers[index].id)
    }
  }
}
