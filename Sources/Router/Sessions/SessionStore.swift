import NIOCore
import WireProtocol

/// Session ID to session: one hash look-up a packet, no loop. Confined to the data plane's loop.
final class SessionStore {
  private(set) var sessions: [SessionID: RoutedSession] = [:]
  private(set) var listenerCount = 0
  /// Told the session that is no longer kept.
  var onForget: (RoutedSession) -> Void = { _ in }
  let statistics: RouterStatistics
  /// Outlets that were written to and are not flushed yet.
  private var unflushed: [FrameOutlet] = []

  init(statistics: RouterStatistics) {
    self.statistics = statistics
  }

  /// Gives a packet to its session's listeners.
  func route(_ id: SessionID, _ audio: ArraySlice<UInt8>) {
    statistics.packetsReceived += 1
    guard let session = sessions[id] else {
      statistics.stalePackets += 1
      return
    }
    session.deliver(audio, to: self)
  }

  /// What all listeners have not taken yet.
  var waitingByteCount: Int { sessions.values.reduce(0) { $0 + $1.waitingByteCount } }

  func flushLater(_ outlet: FrameOutlet) {
    unflushed.append(outlet)
  }

  /// Hands everything written since the last time to the kernel.
  func flush() {
    for outlet in unflushed { outlet.flush() }
    unflushed.removeAll(keepingCapacity: true)
  }

  /// The session of that name, made where there is none.
  func session(_ id: SessionID) throws(Refusal) -> RoutedSession {
    if let session = sessions[id] { return session }
    if sessions.count >= RouterLimits.maximumSessions { forgetLeastTouched() }
    guard sessions.count < RouterLimits.maximumSessions else {
      throw Refusal(
        .tooManySessions, "the Router has \(RouterLimits.maximumSessions) sessions, the most it keeps",
        hint: "try again when others have ended")
    }
    return known(id)
  }

  /// The session of that name where the engine says that it is: beyond the limit, since it plays already.
  func known(_ id: SessionID) -> RoutedSession {
    if let session = sessions[id] { return session }
    let session = RoutedSession(id: id)
    sessions[id] = session
    return session
  }

  /// Forgets a session that nobody hears, that plays nothing and keeps nothing.
  func removeIfUnused(_ session: RoutedSession) {
    if session.isUnused { forget(session) }
  }

  /// Forgets a queue that nobody has heard or touched for a long time.
  ///
  /// - Parameter now: milliseconds since 1970.
  func removeIfAbandoned(_ session: RoutedSession, now: Int) {
    guard session.isAbandoned, now - session.touchedMilliseconds >= RouterLimits.abandonedSeconds * 1_000
    else {
      return
    }
    forget(session)
  }

  /// Makes room for another session, where one can be done without.
  private func forgetLeastTouched() {
    let abandoned = sessions.values.filter(\.isAbandoned)
    if let session = abandoned.min(by: { $0.touchedMilliseconds < $1.touchedMilliseconds }) {
      forget(session)
    }
  }

  private func forget(_ session: RoutedSession) {
    sessions[session.id] = nil
    onForget(session)
  }

  /// Whether one more may listen.
  func checkRoom(for id: SessionID) throws(Refusal) {
    if listenerCount >= RouterLimits.maximumListeners {
      throw Refusal(
        .tooManySessions, "the Router has \(RouterLimits.maximumListeners) listeners, the most it serves",
        hint: "try again when others have left")
    }
    if let session = sessions[id], session.listenerCount >= RouterLimits.maximumListenersPerSession {
      throw Refusal(
        .tooManySessions,
        "the session \(id) has \(RouterLimits.maximumListenersPerSession) listeners, the most it may have",
        hint: "try again when others have left")
    }
  }

  func add(_ listener: WebSocketListener) throws(Refusal) -> RoutedSession {
    let session = try admit(listener.request.sessionID)
    session.add(listener)
    return session
  }

  func add(_ listener: OggListener) throws(Refusal) -> RoutedSession {
    let session = try admit(listener.sessionID)
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

  private func admit(_ id: SessionID) throws(Refusal) -> RoutedSession {
    try checkRoom(for: id)
    let session = try session(id)
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
