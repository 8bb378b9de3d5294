import HTTPTypes
import Hummingbird
import ServiceSupport
import WireProtocol

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// Before every route: checks who may use it. After it: turns every thrown error into the common error object with
/// its status.
struct EngineEndpointMiddleware<Context: RequestContext>: RouterMiddleware {
  let requestGuard: RequestGuard

  func handle(
    _ request: Request, context: Context, next: (Request, Context) async throws -> Response
  ) async throws -> Response {
    do {
      try requestGuard.check(
        RequestGuard.Subject(
          host: request.head.authority, origin: request.headers[.origin],
          fetchSite: request.headers[.secFetchSite], referer: request.headers[.referer],
          effect: Self.effect(of: request)))
      return try await next(request, context)
    } catch let report as ErrorReport {
      return try Self.response(report)
    } catch let error as HTTPError where error.status == .notFound {
      let report = ErrorReport(
        .notFound, "there is nothing at \(request.method) \(request.uri.path.shortened)",
        hint: "docs/http-and-websocket.md lists the paths", stage: .command)
      return try Self.response(report)
    }
  }

  /// What may be watched from anywhere.
  private static var watched: Set<String> { ["/health", "/ready", "/metrics"] }

  private static func effect(of request: Request) -> RequestGuard.Effect {
    guard request.method == .get else { return .change }
    return watched.contains(request.uri.path) ? .none : .work
  }

  private static func response(_ report: ErrorReport) throws -> Response {
    let status = HTTPResponse.Status(code: report.code.httpStatus)
    var headers: HTTPFields = [.contentType: "application/json"]
    if status == .serviceUnavailable { headers[.retryAfter] = "5" }
    return Response(
      status: status, headers: headers,
      body: .init(byteBuffer: ByteBuffer(bytes: try JSONEncoder().encode(report))))
  }
}

extension HTTPField.Name {
  /// Fetch Metadata Request Headers (W3C), section 2.4.
  fileprivate static let secFetchSite = Self("Sec-Fetch-Site")!
}
