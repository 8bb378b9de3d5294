import Hummingbird
import NIOCore
import WireProtocol

/// A request's context: its connection, so that a player that hangs can be cut off, and what its sender may do.
struct RouterRequestContext: RequestContext {
  var coreContext: CoreRequestContextStorage
  let channel: any Channel
  /// Set by `AccessMiddleware`.
  var grant = Grant.nothing
  /// Where the request comes from: an IP address; of one that another Router forwards, its client's.
  var clientAddress: String?
  /// Whether another Router forwards it.
  var isRelayed = false

  init(source: ApplicationRequestContextSource) {
    coreContext = .init(source: source)
    channel = source.channel
    clientAddress = source.channel.remoteAddress?.ipAddress
  }

  /// A part of the path by its name in the route, as it was meant: many clients write `:` as `%3A`.
  func part(_ name: String) throws -> String {
    PercentEncoding.decoded(try parameters.require(name))
  }
}
