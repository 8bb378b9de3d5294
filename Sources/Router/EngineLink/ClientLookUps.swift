import Collections
import NIOCore

/// What clients have the engine look up: a few at a time of each, so that nobody waits behind hundreds of another's.
/// Confined to the data plane's loop.
struct ClientLookUps {
  enum Kind: Hashable {
    case media, resolve
  }

  struct Waiting {
    var start: () -> Void
    var refuse: () -> Void
    var deadline: NIODeadline
  }

  private struct Key: Hashable {
    var client: ClientID
    var kind: Kind
  }

  private struct Row {
    var running = 0
    /// Bounded by the commands that a client may have in flight.
    var waiting: Deque<Waiting> = []
  }

  private var rows: [Key: Row] = [:]

  /// - Parameter most: how many the client may have at a time.
  /// - Returns: whether it is to be started now; it waits where not.
  mutating func begin(_ kind: Kind, _ client: ClientID, most: Int, orWait waiting: @autoclosure () -> Waiting)
    -> Bool
  {
    let key = Key(client: client, kind: kind)
    guard rows[key, default: Row()].running >= most else {
      rows[key, default: Row()].running += 1
      return true
    }
    rows[key, default: Row()].waiting.append(waiting())
    return false
  }

  /// One has been answered.
  ///
  /// - Returns: the next, which takes its place.
  mutating func end(_ kind: Kind, _ client: ClientID) -> Waiting? {
    let key = Key(client: client, kind: kind)
    if let next = rows[key]?.waiting.popFirst() { return next }
    rows[key]?.running -= 1
    if rows[key]?.running == 0 { rows[key] = nil }
    return nil
  }

  /// Takes out those that have waited too long.
  mutating func takeOverdue(now: NIODeadline) -> [Waiting] {
    var overdue: [Waiting] = []
    for key in rows.keys {
      while let first = rows[key]?.waiting.first, first.deadline <= now {
        overdue.append(first)
        rows[key]?.waiting.removeFirst()
      }
    }
    return overdue
  }
}
