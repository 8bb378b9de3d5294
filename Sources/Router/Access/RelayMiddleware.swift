import Hummingbird

/// Restores the client's address in requests that another Router forwards. Runs first.
struct RelayMiddleware: RouterMiddleware {
  typealias Context = RouterRequestContext

  let relay: Relay

  func handle(
    _ request: Request, context: Context, next: (Request, Context) async throws -> Response
  ) async throws -> Response {
    var context = context
    if let client = relay.client(of: request.headers) {
      context.clientAddress = client
      context.isRelayed = true
    }
    var head = request.head
    head.headerFields[Relay.secretField] = nil
    head.headerFields[Relay.clientField] = nil
    return try await next(Request(head: head, body: request.body), context)
  }
}
