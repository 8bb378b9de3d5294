import HTTPLimits
import HummingbirdCore
import Logging
import NIOCore
import NIOHTTPTypes

/// A connection to the HTTP API as Hummingbird serves it, within the limits of connections and of a client's slowness.
struct LimitedHTTPChannel: ServerChildChannel {
  typealias Value = HTTP1Channel.Value

  private let base: HTTP1Channel
  private let counter: ConnectionCounter

  init(responder: @escaping HTTPChannelHandler.Responder, counter: ConnectionCounter) {
    base = HTTP1Channel(
      responder: responder, configuration: .init(additionalChannelHandlers: [RequestDeadlineHandler()]))
    self.counter = counter
  }

  func setup(channel: any Channel, logger: Logger) -> EventLoopFuture<Value> {
    base.setup(channel: channel, logger: logger).flatMapThrowing { value in
      try channel.pipeline.syncOperations.addHandler(
        ConnectionLimitHandler(counter: counter), position: .first)
      return value
    }
  }

  func handle(value: Value, logger: Logger) async { await base.handle(value: value, logger: logger) }
}
