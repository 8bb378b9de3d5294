import Hummingbird
import WireProtocol

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// Before every route: who may come in. After it: every refusal as the one error object with its status.
struct EngineDoorMiddleware<Context: RequestContext>: RouterMiddleware {
  let requestGuard: RequestGuard

  func handle(
    _ request: Request, context: Context, next: (Request, Context) async throws -> Response
  ) async throws -> Response {
    do {
      try requestGuard.check(
        RequestGuard.Subject(
          host: request.head.authority, origin: request.headers[.origin],
          changesSomething: request.method != .get))
      return try await next(request, context)
    } catch let report as ErrorReport {
      return try Self.response(report)
    } catch let error as HTTPError where error.status == .notFound {
      let report = ErrorReport(
        .notFound, "there is nothing at \(request.method) \(request.uri.path)",
        hint: "docs/http-and-websocket.md lists the paths", stage: .command)
      return try Self.response(report)
    }
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
