import NATS
import WireProtocol

/// Why the archive could not be read or written.
package enum ArchiveError: Error, Sendable, Equatable {
  /// Another Router has claimed the session meanwhile.
  case overtaken(SessionID)
  /// JetStream cannot be reached, or a read or write of it has failed. The text says why.
  case unavailable(String)
  /// The stored state of a session cannot be read. It is left alone.
  case unreadable(SessionID, String)

  init(_ error: KeyValueError) { self = .unavailable(error.description) }
}

extension ArchiveError: CustomStringConvertible {
  package var description: String {
    switch self {
    case .overtaken(let id): "the session \(id) belongs to another Router"
    case .unavailable(let reason): "JetStream cannot be read or written: \(reason)"
    case .unreadable(let id, let reason): "the stored state of the session \(id) cannot be read: \(reason)"
    }
  }
}
