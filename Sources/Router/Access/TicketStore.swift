import NIOCore
import Synchronization
import WireProtocol

/// Single-use tickets: what a browser puts into the URL of a WebSocket or an `<audio>`, to which it cannot
/// give headers, in place of a token that others would find in logs and histories. Used from any thread.
package final class TicketStore: Sendable {
  private let tickets = Mutex(TicketShelf())

  package init() {}

  /// Makes a ticket that gives a part of what its holder has, until the holder's own expiry.
  ///
  /// - Throws: `forbidden` beyond what the holder has, `overloaded` where too many of its client wait to be used.
  package func issue(
    to holder: Grant, session: SessionID, scope: Scope, now: NIODeadline = .now()
  ) throws(RequestError) -> String {
    try holder.require(scope, session)
    var grant = holder
    grant.sessions = [SessionPattern(session)]
    grant.scope = scope
    let ticket = TicketShelf.Ticket(grant: grant, expires: now + .seconds(RouterLimits.ticketSeconds))
    let name = KeyFile.randomHex(byteCount: 32)
    try tickets.withLock { tickets throws(RequestError) in try tickets.add(ticket, named: name, now: now) }
    return name
  }

  /// What a ticket gives. Taking it is using it.
  ///
  /// - Parameter taking: false to look only.
  /// - Throws: `unauthorized` where there is no such ticket any more.
  package func grant(
    of name: String, taking: Bool = true, now: NIODeadline = .now()
  ) throws(RequestError) -> Grant {
    let ticket = tickets.withLock { taking ? $0.remove(name) : $0[name] }
    guard let ticket, ticket.expires > now, !ticket.grant.isExpired() else {
      throw RequestError(
        .unauthorized,
        "the ticket was used already, is over \(RouterLimits.ticketSeconds) s old or was never given",
        hint: "POST /api/v1/tickets gives another, for one connection")
    }
    return ticket.grant
  }
}
