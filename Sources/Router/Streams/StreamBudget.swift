/// The bytes of pieces that wait for clients of `/stream` to take them. A piece that many wait for counts once in
/// all, and once for each client.
package struct StreamBudget: Sendable {
  private struct Held {
    var byteCount: Int
    /// Streams that have not taken all of it.
    var holderCount: Int
  }

  private let byteLimit: Int
  private var pieces: [Int: Held] = [:]
  private var clients: [ClientID: [Int: Held]] = [:]
  /// Bytes of all pieces that wait.
  package private(set) var heldByteCount = 0

  package init(byteLimit: Int = RouterLimits.streamWaitingByteCount) {
    self.byteLimit = byteLimit
  }

  /// Whether nobody could be given a large piece.
  package var isFull: Bool { heldByteCount > byteLimit / 2 }

  /// Whether a piece may wait for a client.
  ///
  /// Its largest piece is not counted in a client's share: everyone may have one, however long it is. And a few bytes
  /// find room even where others have filled everything.
  package func hasRoom(for piece: Int, byteCount: Int, client: ClientID) -> Bool {
    let own = clients[client] ?? [:]
    guard own[piece] == nil else { return true }
    let waiting = own.values.reduce(byteCount) { $0 + $1.byteCount }
    let largest = own.values.reduce(byteCount) { max($0, $1.byteCount) }
    guard waiting - largest <= RouterLimits.streamShareByteCount else { return false }
    let isSmall = waiting <= RouterLimits.streamSmallByteCount
    let limit = byteLimit + (isSmall ? RouterLimits.streamReserveByteCount : 0)
    return pieces[piece] != nil || heldByteCount == 0 || heldByteCount + byteCount <= limit
  }

  /// One more stream of a client has a piece waiting.
  package mutating func hold(_ piece: Int, byteCount: Int, client: ClientID) {
    if pieces[piece] == nil { heldByteCount += byteCount }
    pieces[piece, default: Held(byteCount: byteCount, holderCount: 0)].holderCount += 1
    clients[client, default: [:]][piece, default: Held(byteCount: byteCount, holderCount: 0)].holderCount += 1
  }

  /// One of them has taken it, or is gone.
  package mutating func release(_ piece: Int, client: ClientID) {
    guard let held = pieces[piece], let own = clients[client]?[piece] else { return }
    pieces[piece]?.holderCount -= 1
    clients[client]?[piece]?.holderCount -= 1
    if held.holderCount == 1 {
      pieces[piece] = nil
      heldByteCount -= held.byteCount
    }
    guard own.holderCount == 1 else { return }
    clients[client]?[piece] = nil
    if clients[client]?.isEmpty == true { clients[client] = nil }
  }
}
