import HTTPTypes
import Hummingbird
import Logging
import ServiceSupport
import WireProtocol

/// Before every route but the web page's: who asks, and whether that one may (`RouteAccess`).
struct AccessMiddleware: RouterMiddleware {
  typealias Context = RouterRequestContext

  let access: AccessControl
  let budgets: LoopHandle<ClientBudgets>
  let logger: Logger

  func handle(
    _ request: Request, context: Context, next: (Request, Context) async throws -> Response
  ) async throws -> Response {
    // Where there is no route, the answer is the same for everyone.
    guard let path = context.endpointPath else { return try await next(request, context) }
    var context = context
    context.grant = try grant(request, path, context)
    // What is open to all is what probes and GitHub ask for, from whatever address.
    if RouteAccess.of(request.method, path) != .open { try await waitForTokens(context) }
    return try await next(request, context)
  }

  /// One request's worth of the client's budget. Anyone who comes through the same proxy does not pay for it: the
  /// address gets back what was taken before the token was known.
  private func waitForTokens(_ context: Context) async throws {
    let grant = context.grant
    let address = context.clientAddress
    do {
      let seconds = try await budgets { budgets in
        if grant.client != ClientID(subject: nil, address: address) {
          budgets.giveBackRequest(of: address)
        }
        return try budgets.reserve(1, for: grant)
      }
      if seconds > 0 { try await Task.sleep(for: .seconds(seconds)) }
    } catch {
      // As for requests: who is refused would ask again at once, and what the address has does not hold it back.
      try await Task.sleep(for: .seconds(RouterLimits.requestWaitSeconds))
      throw error
    }
  }

  private func grant(_ request: Request, _ path: String, _ context: Context) throws -> Grant {
    var credentials = AccessControl.Credentials(
      authorization: request.headers[.authorization], address: context.clientAddress)
    switch RouteAccess.of(request.method, path) {
    case .open: return .nothing
    case .listener:
      credentials.ticket = request.uri.queryParameters.get("ticket")
      let grant = try access.grant(for: credentials)
      try grant.require(.listen)
      return grant
    case .scope(let scope):
      let grant = try access.grant(for: credentials)
      try grant.require(scope)
      return grant
    case .session(let scope):
      let grant = try access.grant(for: credentials)
      try grant.require(scope, SessionID(context.part("id")))
      return grant
    case nil:
      logger.error("rejecting \(request.method.rawValue) \(path): RouteAccess has no rule for it")
      throw RequestError(
        .forbidden, "\(request.method.rawValue) \(path) is not available",
        hint: "this is a bug of the Router")
    }
  }
}
