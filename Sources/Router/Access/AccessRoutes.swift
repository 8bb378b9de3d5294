import Hummingbird
import WireProtocol

/// `GET /api/v1/me`: what the requester may do. `POST /api/v1/tickets`: a ticket for one connection.
struct AccessRoutes {
  let access: AccessControl

  func add(to router: Hummingbird.Router<RouterRequestContext>) {
    router.get("api/v1/me") { _, context in Response.json(JSON.encode(Me(context.grant))) }
    router.post("api/v1/tickets") { request, context in
      try await ticket(request, holder: context.grant)
    }
  }

  private func ticket(_ request: Request, holder: Grant) async throws -> Response {
    let body = try await request.body.collect(upTo: RouterLimits.maximumTextByteCount)
    let wish: Wish
    do {
      wish = try JSON.decode(Wish.self, fromOutside: Array(body.readableBytesView))
    } catch {
      throw ErrorReport(decoding: error)
    }
    let scope = wish.scope ?? Scope.listen.rawValue
    guard let scope = Scope(rawValue: scope), scope <= .control else {
      throw RequestError(
        .invalidCommand, "a ticket has the scope listen or control, not \(scope.quoted)")
    }
    let ticket = try access.tickets.issue(to: holder, session: wish.session, scope: scope)
    return .json(
      JSON.encode(Given(ticket: ticket, expiresMilliseconds: RouterLimits.ticketSeconds * 1_000)))
  }

  private struct Wish: Decodable {
    var session: SessionID
    var scope: String?
  }

  private struct Given: Encodable {
    var ticket: String
    var expiresMilliseconds: Int64

    enum CodingKeys: String, CodingKey {
      case ticket
      case expiresMilliseconds = "expires_ms"
    }
  }

  private struct Me: Encodable {
    var anonymous: Bool
    var subject: String?
    var scopes: [String]
    var sessions: [String]
    /// Since 1970.
    var expiresAtMilliseconds: Int64?

    init(_ grant: Grant) {
      anonymous = grant.isAnonymous
      subject = grant.subject
      scopes = grant.scope?.included.map(\.rawValue) ?? []
      sessions = grant.sessions.map(\.text)
      expiresAtMilliseconds = grant.expiresAtMilliseconds
    }

    enum CodingKeys: String, CodingKey {
      case anonymous, subject, scopes, sessions
      case expiresAtMilliseconds = "expires_at_ms"
    }
  }
}
