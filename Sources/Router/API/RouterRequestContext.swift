import Hummingbird
import NIOCore

/// A request's context: its connection, so that a player that hangs can be cut off, and what its sender may do.
struct RouterRequestContext: RequestContext {
  var coreContext: CoreRequestContextStorage
  let channel: any Channel
  /// Set by `AccessMiddleware`.
  var grant = Grant.nothing

  init(source: ApplicationRequestContextSource) {
    coreContext = .init(source: source)
    channel = source.channel
  }
}
