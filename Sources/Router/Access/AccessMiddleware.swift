import HTTPTypes
import Hummingbird
import Logging
import WireProtocol

/// Before every route but the web page's: who asks, and whether that one may (`RouteAccess`).
struct AccessMiddleware: RouterMiddleware {
  typealias Context = RouterRequestContext

  let access: AccessControl
  let plane: DataPlaneHandle
  let logger: Logger

  func handle(
    _ request: Request, context: Context, next: (Request, Context) async throws -> Response
  ) async throws -> Response {
    // Where there is no route, the answer is the same for everyone.
    guard let path = context.endpointPath else { return try await next(request, context) }
    var context = context
    context.grant = try grant(request, path, context)
    // What is open to all is what probes and GitHub ask for, from whatever address.
    if RouteAccess.of(request.method, path) != .open { try await waitForTokens(context.grant) }
    return try await next(request, context)
  }

  /// One request's worth of the client's budget.
  private func waitForTokens(_ grant: Grant) async throws {
    let seconds = try await plane { plane in try plane.budgets.reserve(1, for: grant) }
    if seconds > 0 { try await Task.sleep(for: .seconds(seconds)) }
  }

  private func grant(_ request: Request, _ path: String, _ context: Context) throws -> Grant {
    var credentials = AccessControl.Credentials(
      authorization: request.headers[.authorization], address: context.channel.remoteAddress?.ipAddress)
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
      logger.error("the route \(request.method.rawValue) \(path) is refused: RouteAccess does not have it")
      throw Refusal(
        .forbidden, "nobody may use \(request.method.rawValue) \(path)", hint: "the fault is ours")
    }
  }
}
