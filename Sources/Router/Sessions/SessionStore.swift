import NIOCore
import WireProtocol

/// Session ID to session. Confined to the data plane's loop.
final class SessionStore {
  private(set) var sessions: [SessionID: RoutedSession] = [:]
  private(set) var listenerCount = 0
  /// Told the session that is no longer kept.
  var onForget: (RoutedSession) -> Void = { _ in }
  /// Refuses a session that is not to be made here.
  var requireHome: (SessionID) throws(RequestError) -> Void = { _ in }
  /// Whether something of a session is yet to be confirmed by the disk, so that it cannot be forgotten.
  var isUnconfirmed: (SessionID) -> Bool = { _ in false }
  let accounts = SessionAccounts()
  let statistics: RouterStatistics
  let packets: PacketPath

  /// Who plays a session before it is placed.
  let firstEngine: EngineNumber

  /// - Parameter firstEngine: the one engine there is; `none` where sessions are placed.
  init(statistics: RouterStatistics, firstEngine: EngineNumber = .local) {
    self.statistics = statistics
    self.firstEngine = firstEngine
    packets = PacketPath(statistics: statistics)
  }

  /// What all listeners have not taken yet.
  var waitingByteCount: Int { sessions.values.reduce(0) { $0 + $1.waitingByteCount } }

  /// The session of that name, made where there is none.
  ///
  /// - Parameters:
  ///   - client: who asks. One that nobody has made, or that keeps nothing yet, is that client's from now on.
  ///   - limitFactor: how many times the usual limits the client has.
  func session(
    _ id: SessionID, for client: ClientID, limitFactor: Int = 1
  ) throws(RequestError) -> RoutedSession {
    defer { accounts.learn(limitFactor, of: client) }
    if let session = sessions[id] {
      take(session, for: client, limitFactor)
      return session
    }
    try requireHome(id)
    try makeRoom(for: client, limitFactor)
    return make(id, creator: client)
  }

  private func take(_ session: RoutedSession, for client: ClientID, _ limitFactor: Int) {
    guard client != .router, session.creator != client,
      session.creator == .router || session.hasNothingToPersist && session.isAtRest,
      accounts.sessions(of: client).count < maximumSessions(limitFactor)
    else { return }
    accounts.close(session)
    session.creator = client
    accounts.open(session)
  }

  private func maximumSessions(_ limitFactor: Int) -> Int {
    RouterLimits.maximumSessionsPerClient * limitFactor
  }

  /// The session of that name where the engine says that it is: beyond the limit, since it plays already.
  func known(_ id: SessionID) -> RoutedSession {
    sessions[id] ?? make(id, creator: .router)
  }

  /// A session as it was kept.
  func restore(_ record: SessionRecord) {
    make(record.id, creator: record.creator).restore(record)
  }

  @discardableResult
  private func make(_ id: SessionID, creator: ClientID) -> RoutedSession {
    let session = RoutedSession(id: id, creator: creator, accounts: accounts, engine: firstEngine)
    sessions[id] = session
    packets.add(session)
    accounts.open(session)
    return session
  }

  /// Forgets a session that nobody hears, that plays nothing and keeps nothing.
  func removeIfUnused(_ session: RoutedSession) {
    guard session.isUnused, sessions[session.id] === session, !isUnconfirmed(session.id) else { return }
    forget(session)
  }

  /// Forgets a queue that nobody has heard or touched for a long time.
  ///
  /// - Parameter now: the Router's running time in milliseconds.
  func removeIfAbandoned(_ session: RoutedSession, now: Int) {
    guard session.isAbandoned, now - session.touchedMilliseconds >= RouterLimits.abandonedSeconds * 1_000,
      !isUnconfirmed(session.id)
    else {
      return
    }
    forget(session)
  }

  /// Makes room for another session of a client, where one of its own can be done without.
  private func makeRoom(for client: ClientID, _ limitFactor: Int) throws(RequestError) {
    let own = accounts.sessions(of: client)
    let most = maximumSessions(limitFactor)
    let isShareFull = client != .router && own.count >= most
    guard isShareFull || sessions.count >= RouterLimits.maximumSessions else { return }
    // Those of before creators were kept are nobody's: without them a full Router would take nobody new for a month.
    let candidates = isShareFull ? own : own.union(accounts.sessions(of: .router))
    let abandoned = candidates.compactMap { sessions[$0] }.filter { $0.isAbandoned && !isUnconfirmed($0.id) }
    if let session = abandoned.min(by: { $0.touchedMilliseconds < $1.touchedMilliseconds }) {
      return forget(session)
    }
    throw RequestError(
      .tooManySessions,
      isShareFull
        ? "this client has made \(own.count) sessions of \(most), and all of them are in use"
        : "the Router has \(RouterLimits.maximumSessions) sessions, the most it keeps, and none of this "
          + "client's can be done without",
      hint: "try again when others have ended")
  }

  private func forget(_ session: RoutedSession) {
    drop(session)
    onForget(session)
  }

  /// Forgets a session that is another Router's now.
  func drop(_ session: RoutedSession) {
    sessions[session.id] = nil
    packets.remove(session)
    accounts.close(session)
  }

  /// Whether one more may listen.
  func checkRoom(for id: SessionID) throws(RequestError) {
    if listenerCount >= RouterLimits.maximumListeners {
      throw RequestError(
        .tooManySessions, "the Router has \(RouterLimits.maximumListeners) listeners, the most it serves",
        hint: "try again when others have left")
    }
    if let session = sessions[id], session.listenerCount >= RouterLimits.maximumListenersPerSession {
      throw RequestError(
        .tooManySessions,
        "the session \(id) has \(RouterLimits.maximumListenersPerSession) listeners, the most it may have",
        hint: "try again when others have left")
    }
  }

  func add(_ listener: WebSocketListener) throws(RequestError) -> RoutedSession {
    let session = try admit(listener.request.sessionID, listener.request.grant)
    session.add(listener)
    return session
  }

  func add(_ listener: OggListener) throws(RequestError) -> RoutedSession {
    let session = try admit(listener.sessionID, listener.grant)
    session.add(listener)
    return session
  }

  /// Counts a client of `/stream`, for which `checkRoom` has found room.
  func addStream() {
    listenerCount += 1
    statistics.listenersAccepted += 1
  }

  func removeStream() {
    listenerCount -= 1
  }

  func remove(_ listener: WebSocketListener, from session: RoutedSession) {
    left(session, session.remove(listener))
  }

  func remove(_ listener: OggListener, from session: RoutedSession) {
    left(session, session.remove(listener))
  }

  private func admit(_ id: SessionID, _ grant: Grant) throws(RequestError) -> RoutedSession {
    try checkRoom(for: id)
    // Who listens alone takes no session over.
    let session =
      if let known = sessions[id] { known } else {
        try session(id, for: grant.client, limitFactor: grant.limitFactor)
      }
    listenerCount += 1
    statistics.listenersAccepted += 1
    return session
  }

  private func left(_ session: RoutedSession, _ wasHere: Bool) {
    guard wasHere else { return }
    listenerCount -= 1
    removeIfUnused(session)
  }
}
