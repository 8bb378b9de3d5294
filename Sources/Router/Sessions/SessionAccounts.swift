import WireProtocol

/// What sessions and their queues take, in all and of each client that has made some. Confined to the data plane's
/// loop.
final class SessionAccounts {
  struct Bytes: Equatable {
    /// Of the queue in memory, and of all of it, which is on disk.
    var memory = 0
    var stored = 0
  }

  private(set) var total = Bytes()
  private var stored: [ClientID: Int] = [:]
  private var sessions: [ClientID: Set<SessionID>] = [:]
  /// How many times the usual limits a client has, as it last said.
  private var factors: [ClientID: Int] = [:]

  func sessions(of client: ClientID) -> Set<SessionID> { sessions[client] ?? [] }

  func storedByteCount(of client: ClientID) -> Int { stored[client] ?? 0 }

  /// Remembers what limits a client has. Only for one that has sessions, so that no more is remembered than there
  /// are.
  func learn(_ factor: Int, of client: ClientID) {
    guard sessions[client] != nil else { return }
    factors[client] = factor
  }

  func factor(of client: ClientID) -> Int { factors[client] ?? 1 }

  // MARK: Sessions

  func open(_ session: RoutedSession) {
    sessions[session.creator, default: []].insert(session.id)
  }

  func close(_ session: RoutedSession) {
    remove(session)
    sessions[session.creator]?.remove(session.id)
    guard sessions[session.creator]?.isEmpty == true else { return }
    sessions[session.creator] = nil
    factors[session.creator] = nil
  }

  /// Takes the session's queue as it is now.
  func update(_ session: RoutedSession) {
    let memory = session.queue.byteCount
    let bytes = Bytes(memory: memory, stored: memory + (session.storedRows?.byteCount ?? 0))
    guard bytes != session.accounted else { return }
    add(
      Bytes(
        memory: bytes.memory - session.accounted.memory, stored: bytes.stored - session.accounted.stored),
      session.creator)
    session.accounted = bytes
  }

  /// Takes it out.
  func remove(_ session: RoutedSession) {
    add(Bytes(memory: -session.accounted.memory, stored: -session.accounted.stored), session.creator)
    session.accounted = Bytes()
  }

  private func add(_ bytes: Bytes, _ client: ClientID) {
    total.memory += bytes.memory
    total.stored += bytes.stored
    let own = stored[client, default: 0] + bytes.stored
    stored[client] = own == 0 ? nil : own
  }

  // MARK: Room

  /// Refuses what has no room in the client's share of the disk, or on the disk.
  func requireRoom(for byteCount: Int, of client: ClientID) throws(RequestError) {
    let own = storedByteCount(of: client)
    let share = share(of: client)
    guard own + byteCount <= share || client == .router else {
      throw RequestError(
        .queueFull,
        "the queues of this session's client take \(own) bytes of \(share): there is no room for "
          + "\(byteCount) more",
        hint: "clear queues that are not needed any more")
    }
    guard total.stored + byteCount <= RouterLimits.storedQueueByteCount else {
      throw RequestError(
        .queueFull,
        "all queues together take \(total.stored) bytes of \(RouterLimits.storedQueueByteCount): there is no "
          + "room for \(byteCount) more",
        hint: "clear queues that are not needed any more")
    }
  }

  func historyByteLimit(of client: ClientID) -> Int {
    RouterLimits.historyByteCount(sessions: sessions[client]?.count ?? 0, share: share(of: client))
  }

  private func share(of client: ClientID) -> Int {
    min(RouterLimits.clientQueueByteCount * factor(of: client), RouterLimits.maximumClientQueueByteCount)
  }

  func hasRoomInMemory(for byteCount: Int) -> Bool {
    total.memory + byteCount <= RouterLimits.memoryQueueByteCount
  }
}
