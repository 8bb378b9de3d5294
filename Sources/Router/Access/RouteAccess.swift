import HTTPTypes
import Hummingbird

/// What each route asks of those who come. A route that is not in the table is refused to everyone: who adds
/// one has to say whose it is.
enum RouteAccess: Sendable, Equatable {
  /// For everyone.
  case open
  /// The scope, for whichever session.
  case scope(Scope)
  /// The scope for the session in the path.
  case session(Scope)
  /// `listen`, by token or ticket; `ListenRequest` checks its session.
  case listener

  /// By method and path, as Hummingbird writes it. HEAD is as GET.
  static let table: [String: RouteAccess] = [
    "GET /health": .open,
    "GET /ready": .open,
    "GET /health/repo/{id}": .session(.listen),
    // By its signature.
    "POST /webhooks/github": .open,
    "POST /webhooks/event": .open,
    // `StreamRoutes` checks its session.
    "GET /stream/{id}": .listener,
    "POST /stream/{id}/test": .session(.control),
    "GET /metrics": .scope(.admin),
    "GET /ws": .listener,
    "GET /listen/{file}": .listener,
    "GET /artwork": .listener,
    "GET /api/v1/openapi.yaml": .open,
    "GET /api/v1/me": .scope(.listen),
    "POST /api/v1/tickets": .scope(.listen),
    "GET /api/v1/media": .scope(.control),
    "GET /api/v1/resolve": .scope(.control),
    // Those that the token is for.
    "GET /api/v1/repositories": .scope(.listen),
    "GET /api/v1/repositories/{id}": .session(.listen),
    "GET /api/v1/repositories/{id}/events": .session(.listen),
    "GET /api/v1/repositories/{id}/replay": .session(.listen),
    "GET /api/v1/repositories/{id}/replay.ogg": .session(.listen),
    "GET /api/v1/sessions": .scope(.listen),
    "GET /api/v1/sessions/{id}": .session(.listen),
    "GET /api/v1/sessions/{id}/why": .session(.listen),
    "GET /api/v1/sessions/{id}/queue": .session(.listen),
    "GET /api/v1/sessions/{id}/history": .session(.listen),
    "POST /api/v1/sessions/{id}/play": .session(.control),
    "POST /api/v1/sessions/{id}/prepare": .session(.control),
    "POST /api/v1/sessions/{id}/unprepare": .session(.control),
    "POST /api/v1/sessions/{id}/pause": .session(.control),
    "POST /api/v1/sessions/{id}/resume": .session(.control),
    "POST /api/v1/sessions/{id}/stop": .session(.control),
    "POST /api/v1/sessions/{id}/seek": .session(.control),
    "POST /api/v1/sessions/{id}/volume": .session(.control),
    "POST /api/v1/sessions/{id}/quality": .session(.control),
    "POST /api/v1/sessions/{id}/perform": .session(.control),
    "POST /api/v1/sessions/{id}/mute": .session(.control),
    "POST /api/v1/sessions/{id}/skip": .session(.control),
    "POST /api/v1/sessions/{id}/skip_to": .session(.control),
    "POST /api/v1/sessions/{id}/previous": .session(.control),
    "POST /api/v1/sessions/{id}/queue": .session(.control),
    "DELETE /api/v1/sessions/{id}/queue": .session(.control),
    "POST /api/v1/sessions/{id}/queue/shuffle": .session(.control),
    "POST /api/v1/sessions/{id}/queue/loop": .session(.control),
    "POST /api/v1/sessions/{id}/queue/{entry}/move": .session(.control),
    "DELETE /api/v1/sessions/{id}/queue/{entry}": .session(.control),
  ]

  /// - Parameter path: a route's, with its parameters in braces.
  static func of(_ method: HTTPRequest.Method, _ path: String) -> RouteAccess? {
    let method = method == .head ? .get : method
    return table["\(method.rawValue) \(path.hasPrefix("/") ? path : "/" + path)"]
  }
}

extension RouteAccess: CustomStringConvertible {
  var description: String {
    switch self {
    case .open: "open"
    case .scope(let scope): scope.rawValue
    case .session(let scope): "\(scope.rawValue) of its session"
    case .listener: "listen, by ticket too"
    }
  }
}
