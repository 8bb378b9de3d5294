import NIOCore

/// Bounds on what a connection may hold and how long it waits. Reaching one is an error for the requester or a counted
/// drop, never growth.
public struct NATSLimits: Sendable, Equatable {
  /// Bytes in a line of the server. INFO is the longest: it names each server of a cluster.
  public var lineByteCount = 32 * 1024
  /// Bytes in the headers of a message.
  public var headerByteCount = 64 * 1024
  /// Bytes in a message that comes in, headers included. A larger one ends the connection.
  public var payloadByteCount = 8 << 20
  /// Bytes that wait to be sent. Over it a publication is dropped and counted. Requests and subscriptions have as much
  /// again, so that a flood of audio does not stop them.
  public var outboundByteCount = 4 << 20
  /// Requests that wait for an answer.
  public var pendingRequestCount = 4_096
  /// Subscriptions at one time.
  public var subscriptionCount = 65_536
  /// Bytes in a subject.
  public var subjectByteCount = 1_024
  /// Servers that are tried, those that the servers name included.
  public var serverCount = 64

  /// To reach a server, and then until it has accepted us.
  public var handshakeTimeout = TimeAmount.seconds(2)
  /// Between two pings. A server that leaves two unanswered is given up at the third, 4 to 6 s after it froze.
  public var pingInterval = TimeAmount.seconds(2)
  /// Wait before a reconnection at first; it doubles each time all servers were tried.
  public var firstReconnectMilliseconds: Int64 = 50
  public var lastReconnectMilliseconds: Int64 = 2_000

  public init() {}
}
