import NIOCore

/// Sees a connection's first request before the Router serves it, and may hand the whole connection to another Router.
/// Confined to the connection's loop.
protocol ConnectionForwarder: ChannelHandler, AnyObject {
  /// The handlers of HTTP, in the order in which they are taken out of the pipeline for that.
  var httpHandlers: [any RemovableChannelHandler] { get set }
  /// Whether it was handed over.
  var isForwarding: Bool { get }
}
