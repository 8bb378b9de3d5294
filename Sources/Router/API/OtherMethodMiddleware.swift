import HTTPTypes
import Hummingbird
import WireProtocol

/// Behind the routes: a path that is there, asked with a method that it has not, is 405 with `Allow`
/// (RFC 9110, 15.5.6). Added after the last route, so that it sees what no route has taken.
struct OtherMethodMiddleware: RouterMiddleware {
  typealias Context = RouterRequestContext

  private let methods: [(path: RouterPath, method: HTTPRequest.Method)]

  init(routes: [Hummingbird.Router<RouterRequestContext>.RouteDescription]) {
    methods = routes.map { ($0.path, $0.method) }
  }

  func handle(
    _ request: Request, context: Context, next: (Request, Context) async throws -> Response
  ) async throws -> Response {
    let allowed = allowedMethods(at: request.uri.path)
    guard !allowed.isEmpty else { return try await next(request, context) }
    let list = allowed.joined(separator: ", ")
    let message = "\(request.uri.path.shortened) has no \(request.method.rawValue)"
    var response = Response(RequestError(.methodNotAllowed, message, hint: "it has \(list)"))
    response.headers[.allow] = list
    return response
  }

  private func allowedMethods(at path: String) -> [String] {
    let parts = path.split(separator: "/")
    let matching = methods.filter { route in
      route.path.count == parts.count && zip(route.path, parts).allSatisfy { $0 ~= $1 }
    }
    // As the router itself: a name goes before a parameter.
    let nearest = matching.max { Self.nameCount($0.path) < Self.nameCount($1.path) }
    guard let nearest else { return [] }
    var names = Set(matching.filter { $0.path == nearest.path }.map(\.method.rawValue))
    if names.contains("GET") { names.insert("HEAD") }
    return names.union(["OPTIONS"]).sorted()
  }

  private static func nameCount(_ path: RouterPath) -> Int {
    path.count { !$0.description.contains("{") }
  }
}
