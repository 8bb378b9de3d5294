import HTTPTypes
import Hummingbird
import Logging
import WireProtocol

/// Before every route but the web page's: who asks, and whether that one may (`RouteAccess`).
struct AccessMiddleware: RouterMiddleware {
  typealias Context = RouterRequestContext

  let access: AccessControl
  let logger: Logger

  func handle(
    _ request: Request, context: Context, next: (Request, Context) async throws -> Response
  ) async throws -> Response {
    // Where there is no route, the answer is the same for everyone.
    guard let path = context.endpointPath else { return try await next(request, context) }
    var context = context
    context.grant = try grant(request, path, context)
    return try await next(request, context)
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
