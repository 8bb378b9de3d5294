/// Why something asked of the NATS client did not happen.
public enum NATSError: Error, Sendable, Equatable {
  /// Nothing was sent: there is no connection now. The text says why.
  case notConnected(String)
  /// The connection broke before the answer came: whether the request was acted upon is unknown.
  case connectionLost
  /// No answer came in time: whether the request was acted upon is unknown.
  case timeout
  /// Nothing was done: nobody subscribes to the subject.
  case noResponders
  /// Nothing was sent: one of the client's limits is reached. The text names it.
  case overloaded(String)
  /// Nothing was sent: headers and payload are larger than the server takes.
  case payloadTooLarge(byteCount: Int, limit: Int)
  /// A subject, header, address or file is not what it must be. The text says what is wrong with it.
  case invalid(String)
  /// The client has been closed.
  case closed

  /// Whether the request may have been carried out: the caller has to check before it repeats it.
  public var isOutcomeUnknown: Bool { self == .connectionLost || self == .timeout }
}

extension NATSError: CustomStringConvertible {
  public var description: String {
    switch self {
    case .notConnected(let reason): "not connected to NATS: \(reason)"
    case .connectionLost: "the connection to NATS broke before the answer came"
    case .timeout: "no answer came in time"
    case .noResponders: "no responders for this subject"
    case .overloaded(let limit): "the NATS client has reached a limit: \(limit)"
    case .payloadTooLarge(let byteCount, let limit):
      "the message has \(byteCount) bytes, over the server's limit of \(limit)"
    case .invalid(let what): what
    case .closed: "the NATS client is closed"
    }
  }
}

/// What a server has sent is not the NATS protocol, or is larger than we take. The connection cannot be kept.
public struct NATSProtocolError: Error, Sendable, Equatable, CustomStringConvertible {
  public let description: String

  init(_ description: String) { self.description = description }
}
