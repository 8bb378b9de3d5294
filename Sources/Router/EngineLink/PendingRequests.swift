import NIOCore

/// Commands that wait for the engine's answer. Clients choose their `request_id` freely and so may choose
/// the same; on the wire each has one of the router's own, which no other router's start has had.
package struct PendingRequests<Waiter> {
  private struct Entry {
    var waiter: Waiter
    var deadline: NIODeadline
  }

  package let prefix: String
  private var lastNumber: UInt64 = 0
  private var entries: [String: Entry] = [:]

  /// - Parameter prefix: unique to this start of the router.
  package init(prefix: String) {
    self.prefix = prefix
  }

  package var count: Int { entries.count }

  /// Remembers who waits.
  ///
  /// - Returns: the request ID for the wire, nil where too many wait.
  package mutating func add(_ waiter: Waiter, now: NIODeadline) -> String? {
    guard entries.count < RouterLimits.maximumPendingRequests else { return nil }
    lastNumber += 1
    let id = "\(prefix)-\(lastNumber)"
    entries[id] = Entry(waiter: waiter, deadline: now + .seconds(RouterLimits.answerSeconds))
    return id
  }

  /// Who asked, once: the next answer with the same ID finds nobody.
  package mutating func take(_ id: String) -> Waiter? {
    entries.removeValue(forKey: id)?.waiter
  }

  /// Takes those whose time is over.
  package mutating func takeExpired(now: NIODeadline) -> [(id: String, waiter: Waiter)] {
    take { $0.deadline <= now }
  }

  /// Takes all, since nobody will answer them.
  package mutating func takeAll() -> [(id: String, waiter: Waiter)] {
    take { _ in true }
  }

  private mutating func take(where isTaken: (Entry) -> Bool) -> [(id: String, waiter: Waiter)] {
    let taken = entries.filter { isTaken($0.value) }
    for id in taken.keys { entries[id] = nil }
    return taken.map { ($0.key, $0.value.waiter) }
  }
}
