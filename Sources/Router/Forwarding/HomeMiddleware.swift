import AsyncHTTPClient
import HTTPTypes
import Hummingbird
import NIOCore
import NIOHTTP1
import WireProtocol

/// Has requests for a session, or a repository, answered by the Router that is its home. Before what asks for tokens: the
/// home decides everything.
struct HomeMiddleware: RouterMiddleware {
  typealias Context = RouterRequestContext

  let homes: LoopHandle<Homes>
  let access: AccessControl
  let client: ForwardingClient

  func handle(
    _ request: Request, context: Context, next: (Request, Context) async throws -> Response
  ) async throws -> Response {
    guard !context.isRelayed, let id = session(of: context) else { return try await next(request, context) }
    let claims = mayClaim(request, id, context)
    var destination = try await destination { homes in homes.destination(of: id, claims: claims) }
    while case .router(let router) = destination {
      do {
        return try await client.forward(request, for: id, to: router, from: context)
      } catch is ForwardingClient.UnreachableError {
        destination = try await self.destination { homes in
          homes.destination(of: id, claims: claims, after: router)
        }
      }
    }
    return try await next(request, context)
  }

  private func destination(
    _ find: @escaping @Sendable (Homes) -> EventLoopFuture<Homes.Destination?>
  ) async throws -> Homes.Destination? {
    try await homes.eventLoop.flatSubmit { find(homes.onLoop) }.get()
  }

  /// The session that the path names.
  private func session(of context: Context) -> SessionID? {
    guard let path = context.endpointPath else { return nil }
    let name: String?
    switch Self.kind(of: path) {
    case .named: name = try? context.part("id")
    case .file: name = (try? context.part("file")).flatMap { $0.hasSuffix(".ogg") ? String($0.dropLast(4)) : nil }
    case nil: name = nil
    }
    return name.flatMap { try? SessionID($0) }
  }

  private enum PathKind {
    /// `{id}` is the session's, or a repository's.
    case named
    /// `{file}` is the session's with its suffix.
    case file
  }

  private static let namedPaths = [
    "/api/v1/sessions/{id}", "/api/v1/repositories/{id}", "/stream/{id}", "/health/repo/{id}",
  ]

  private static func kind(of path: String) -> PathKind? {
    if namedPaths.contains(where: { path == $0 || path.hasPrefix($0 + "/") }) { return .named }
    return path == "/listen/{file}" ? .file : nil
  }

  /// Whether the request makes a session, and its client may.
  private func mayClaim(_ request: Request, _ id: SessionID, _ context: Context) -> Bool {
    guard let path = context.endpointPath else { return false }
    let isListening = path == "/listen/{file}"
    let isCommand = path.hasPrefix("/api/v1/sessions/{id}/") && request.method != .get && request.method != .head
    guard isListening || isCommand else { return false }
    let credentials = AccessControl.Credentials(
      authorization: request.headers[.authorization],
      ticket: isListening ? request.uri.queryParameters.get("ticket") : nil, address: context.clientAddress)
    guard let grant = try? access.grant(for: credentials, takingTicket: false) else { return false }
    return (try? grant.require(isListening ? .listen : .control, id)) != nil
  }
}
