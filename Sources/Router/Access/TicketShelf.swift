import Collections
import NIOCore

/// The tickets that wait to be used, by whose they are. Nothing is gone through for a ticket but what is over.
struct TicketShelf {
  struct Ticket {
    /// What it gives, and to whom.
    var grant: Grant
    var expires: NIODeadline
  }

  private struct Share {
    var count = 0
    /// The oldest first, used ones among them.
    var names: Deque<String> = []
  }

  private var tickets: [String: Ticket] = [:]
  private var shares: [ClientID: Share] = [:]
  /// All, in the order in which they end, since each is good for as long as the others.
  private var ends: Deque<(name: String, expires: NIODeadline)> = []

  subscript(name: String) -> Ticket? { tickets[name] }

  /// Where all is full, the oldest ticket of the client that holds most goes.
  ///
  /// - Throws: `overloaded` where its client holds as many as it may.
  mutating func add(_ ticket: Ticket, named name: String, now: NIODeadline) throws(RequestError) {
    forgetExpired(now: now)
    let client = ticket.grant.client
    let count = shares[client]?.count ?? 0
    guard count < RouterLimits.maximumTicketsPerClient * ticket.grant.limitFactor else {
      throw RequestError(
        .overloaded, "\(count) tickets of this client wait to be used",
        hint: "each is good for \(RouterLimits.ticketSeconds) s; ask again when some are used or over")
    }
    if tickets.count >= RouterLimits.maximumTickets { makeRoom() }
    tickets[name] = ticket
    ends.append((name, ticket.expires))
    shares[client, default: Share()].names.append(name)
    shares[client]?.count += 1
  }

  @discardableResult
  mutating func remove(_ name: String) -> Ticket? {
    guard let ticket = tickets.removeValue(forKey: name) else { return nil }
    let client = ticket.grant.client
    shares[client]?.count -= 1
    if shares[client]?.count == 0 { shares[client] = nil }
    while let oldest = shares[client]?.names.first, tickets[oldest] == nil {
      shares[client]?.names.removeFirst()
    }
    return ticket
  }

  private mutating func forgetExpired(now: NIODeadline) {
    while let first = ends.first, first.expires <= now {
      ends.removeFirst()
      remove(first.name)
    }
  }

  private mutating func makeRoom() {
    let largest = shares.values.max { $0.count < $1.count }
    if let oldest = largest?.names.first { remove(oldest) }
  }
}
