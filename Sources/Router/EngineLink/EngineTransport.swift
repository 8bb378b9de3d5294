import NIOCore

/// Makes connections to one engine. Used on the data plane's loop.
protocol EngineTransport: AnyObject {
  /// Where the engine is, for people: "the engine at /run/antiphon/engine.sock".
  var place: String { get }

  /// Connects, and calls `opened` of the link, or `failedToConnect`.
  func connect(_ link: EngineLink)
}

/// Carries the wire protocol's bytes to and from one engine. Used on the data plane's loop. What comes is given to the
/// connection's `EngineStream`.
protocol EngineConnection: AnyObject {
  /// Whether the engine reads what it is sent.
  var isWritable: Bool { get }

  func write(_ bytes: ByteBuffer)
  func close()
}
