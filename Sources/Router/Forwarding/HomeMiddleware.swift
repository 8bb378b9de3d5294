import AsyncHTTPClient
import HTTPTypes
import Hummingbird
import NIOCore
import NIOHTTP1
import WireProtocol

/// Forwards requests for a session or a repository to its home Router. Runs before authentication, which the home performs.
struct HomeMiddleware: RouterMiddleware {
  typealias Context = RouterRequestContext

  let homes: LoopHandle<Homes>
  let access: AccessControl
  let client: ForwardingClient

  func handle(
    _ request: Request, context: Context, next: (Request, Context) async throws -> Response
  ) async throws -> Response {
    var request = request
    guard let id = try await session(of: &request, context) else {
      return try await next(request, context)
    }
    // Also where another Router forwards it, taking this one for the session's home.
    let claimant = claimant(request, id, context)
    var destination = try await destination { homes in homes.destination(of: id, claimant: claimant) }
    // All of the body: a response before its end would leave it with two readers.
    if case .router = destination {
      _ = try await Self.readWhole(&request)
    }
    while case .router(let router) = destination {
      // A request is forwarded only once: the Router that forwarded it looks up the home again.
      guard !context.isRelayed else { throw RequestError.moved(id) }
      do {
        return try await client.forward(request, for: id, to: router, from: context)
      } catch is ForwardingClient.UnreachableError {
        destination = try await self.destination { homes in
          homes.destination(of: id, claimant: claimant, after: router)
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

  /// The session that the path names; of a ticket its body does, since the ticket is used where the session is.
  private func session(of request: inout Request, _ context: Context) async throws -> SessionID? {
    guard let path = context.endpointPath else { return nil }
    if path == Self.ticketPath {
      let body = try await Self.readWhole(&request)
      return try? JSON.decode(TicketSession.self, fromOutside: Array(body.readableBytesView)).session
    }
    return Self.name(in: path, context).flatMap { try? SessionID($0) }
  }

  /// Reads a request's body, which can be read again.
  private static func readWhole(_ request: inout Request) async throws -> ByteBuffer {
    let body = try await request.body.collect(upTo: RouterLimits.maximumTextByteCount)
    request = Request(head: request.head, body: .init(buffer: body))
    return body
  }

  private struct TicketSession: Decodable {
    var session: SessionID
  }

  private static func name(in path: String, _ context: Context) -> String? {
    switch kind(of: path) {
    case .named: try? context.part("id")
    case .file: (try? context.part("file")).flatMap { $0.hasSuffix(".ogg") ? String($0.dropLast(4)) : nil }
    case nil: nil
    }
  }

  private enum PathKind {
    /// `{id}` is the session's, or a repository's.
    case named
    /// `{file}` is the session's with its suffix.
    case file
  }

  private static let ticketPath = "/api/v1/tickets"
  private static let filePath = "/listen/{file}"
  private static let namedPaths = [
    "/api/v1/sessions/{id}", "/api/v1/repositories/{id}", "/stream/{id}", "/health/repo/{id}",
  ]

  private static func kind(of path: String) -> PathKind? {
    if namedPaths.contains(where: { path == $0 || path.hasPrefix($0 + "/") }) { return .named }
    return path == filePath ? .file : nil
  }

  /// The client, where the request makes a session and it may.
  private func claimant(_ request: Request, _ id: SessionID, _ context: Context) -> ClientID? {
    guard let path = context.endpointPath else { return nil }
    let isListening = path == Self.filePath || path == Self.ticketPath
    let isRead = request.method == .get || request.method == .head
    let isCommand = path.hasPrefix("/api/v1/sessions/{id}/") && !isRead
    guard isListening || isCommand else { return nil }
    let credentials = AccessControl.Credentials(
      authorization: request.headers[.authorization],
      ticket: isListening ? request.uri.queryParameters.get("ticket") : nil, address: context.clientAddress)
    return access.client(of: credentials, allowed: isListening ? .listen : .control, id)
  }
}
