import HTTPTypes
import Hummingbird
import Logging
import NIOCore
import ServiceSupport
import WireProtocol

/// Before every route: who may come in. After it: one shape for every error.
struct EndpointMiddleware: RouterMiddleware {
  typealias Context = RouterRequestContext

  let requestGuard: RequestGuard
  let budgets: LoopHandle<ClientBudgets>
  let logger: Logger

  func handle(
    _ request: Request, context: Context, next: (Request, Context) async throws -> Response
  ) async throws -> Response {
    var response: Response
    do {
      try await waitForTurn(context)
      try requestGuard.check(
        RequestGuard.Subject(
          host: request.head.authority, origin: request.headers[.origin],
          fetchSite: request.headers[.secFetchSite], referer: request.headers[.referer],
          // What a strange page has come by, a token, is of no use to it.
          effect: request.headers[.authorization] != nil ? .change : effect(of: request)))
      response =
        request.method == .options ? Response(status: .noContent) : try await next(request, context)
    } catch {
      let requestError = requestError(error, request, context)
      if requestError.status == 401 { try await chargeUnauthorized(context) }
      response = Response(requestError)
    }
    response.headers[.xContentTypeOptions] = "nosniff"
    // NIO upgrades a connection's first request only: a client that keeps connections must not send its
    // WebSocket's upgrade on one that has served the API.
    if response.headers[.contentType] == "application/json" { response.headers[.connection] = "close" }
    allowListedOrigin(of: request, in: &response)
    return response
  }

  /// One address's requests come no faster than all others can bear.
  private func waitForTurn(_ context: Context) async throws {
    let address = context.clientAddress
    do {
      let seconds = try await budgets { budgets in try budgets.reserveRequest(from: address) }
      if seconds > 0 { try await Task.sleep(for: .seconds(seconds)) }
    } catch {
      // Who is refused would ask again at once: the error comes no sooner than an answer would.
      try await Task.sleep(for: .seconds(RouterLimits.requestWaitSeconds))
      throw error
    }
  }

  /// Who shows nothing that lets them in pays more than who does: each such answer ends a connection.
  private func chargeUnauthorized(_ context: Context) async throws {
    let address = context.clientAddress
    try await budgets { budgets in budgets.chargeUnauthorized(address) }
  }

  /// What costs work to answer, below these paths: the pages' own files and what is watched are not among them.
  private static let workPaths = ["/api/v1/", "/listen/", "/artwork", "/stream/"]
  private static let descriptionPath = "/api/v1/openapi.yaml"

  private func effect(of request: Request) -> RequestGuard.Effect {
    let path = request.uri.path
    switch request.method {
    // A refused WebSocket comes here as a plain GET, and is to be told the same reason.
    case .get where path == "/ws": return .change
    case .get, .head:
      let isWork = path != Self.descriptionPath && Self.workPaths.contains { path.hasPrefix($0) }
      return isWork ? .work : .none
    case .options: return .none
    default: return .change
    }
  }

  private func requestError(_ error: any Error, _ request: Request, _ context: Context) -> RequestError {
    switch error {
    case let requestError as RequestError: return requestError
    case let report as ErrorReport: return RequestError(report)
    case is CancellationError: return RequestError(.engineUnavailable, "the Router is stopping")
    case is NIOTooManyBytesError:
      return RequestError(.lineTooLong, "the body has over \(RouterLimits.maximumTextByteCount) bytes")
    case let error as any HTTPResponseError where error.status == .notFound:
      return RequestError(
        .notFound, "there is no \(request.method.rawValue) \(request.uri.path.shortened)",
        hint: "docs/http-and-websocket.md lists the paths")
    case let error as any HTTPResponseError:
      return RequestError(.invalidCommand, "\(error)", status: error.status.code)
    default:
      logger.error(
        "\(request.method.rawValue) \(request.uri.path): \(error)",
        metadata: context.parameters.get("id").map { ["session": "\($0)"] })
      return RequestError(.internal, "an internal error; the log has the rest")
    }
  }

  /// Lets a page of a listed origin read what it is answered; every other page's browser keeps it away.
  private func allowListedOrigin(of request: Request, in response: inout Response) {
    // Also without it, since a cache may have either answer.
    response.headers[.vary] = "Origin"
    guard let origin = request.headers[.origin], requestGuard.isListed(origin: origin) else { return }
    response.headers[.accessControlAllowOrigin] = origin
    response.headers[.accessControlExposeHeaders] = "ETag, Retry-After"
    // A preflight: it has no token yet, and learns what a request with one may have.
    guard request.method == .options else { return }
    response.headers[.accessControlAllowMethods] = "GET, HEAD, POST, DELETE"
    response.headers[.accessControlAllowHeaders] =
      "Authorization, Content-Type, Idempotency-Key, Last-Event-ID"
    response.headers[.accessControlMaxAge] = String(RouterLimits.preflightSeconds)
  }
}

extension HTTPField.Name {
  /// Fetch Metadata Request Headers (W3C), section 2.4.
  fileprivate static let secFetchSite = Self("Sec-Fetch-Site")!
}
