import NATS
import WireProtocol

/// Why the archive did not do what it was to.
package enum ArchiveError: Error, Sendable, Equatable {
  /// Another Router has written the session since: it is that one's now.
  case overtaken(SessionID)
  /// NATS cannot be reached, or does not take it. The text says why.
  case unavailable(String)
  /// What is kept of a session cannot be read. It stays as it is.
  case unreadable(SessionID, String)

  init(_ error: KeyValueError) { self = .unavailable(error.description) }
}

extension ArchiveError: CustomStringConvertible {
  package var description: String {
    switch self {
    case .overtaken(let id): "the session \(id) is another Router's"
    case .unavailable(let reason): "NATS does not keep it: \(reason)"
    case .unreadable(let id, let reason): "what NATS has of the session \(id) cannot be read: \(reason)"
    }
  }
}
