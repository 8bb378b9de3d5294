import Hummingbird
import NIOCore

/// A request's context, with its connection, so that a player that hangs can be cut off.
struct RouterRequestContext: RequestContext {
  var coreContext: CoreRequestContextStorage
  let channel: any Channel

  init(source: ApplicationRequestContextSource) {
    coreContext = .init(source: source)
    channel = source.channel
  }
}
