import HTTPLimits
import HummingbirdCore
import Logging
import NIOCore
import NIOHTTP1
import NIOHTTPTypes

/// A connection to the HTTP API as Hummingbird serves it, within the limits of connections, of a
/// request's shape and of a client's slowness.
struct LimitedHTTPChannel: ServerChildChannel {
  typealias Value = HTTP1Channel.Value

  private let base: HTTP1Channel
  private let counter: ConnectionCounter

  init(responder: @escaping HTTPChannelHandler.Responder, counter: ConnectionCounter) {
    let limits = RequestShape().decoderLimits
    base = HTTP1Channel(
      responder: responder,
      configuration: .init(
        additionalChannelHandlers: [RequestDeadlineHandler()],
        httpDecoderConfiguration: .init(
          maxHeaderFieldSize: limits.maxHeaderFieldSize, maxHeaderListSize: limits.maxHeaderListSize,
          maxHeaderFieldCount: limits.maxHeaderFieldCount)))
    self.counter = counter
  }

  func setup(channel: any Channel, logger: Logger) -> EventLoopFuture<Value> {
    base.setup(channel: channel, logger: logger).flatMapThrowing { value in
      let pipeline = channel.pipeline.syncOperations
      try pipeline.addHandler(ConnectionLimitHandler(counter: counter), position: .first)
      let decoder = try pipeline.handler(type: ByteToMessageHandler<HTTPRequestDecoder>.self)
      try pipeline.addHandler(RequestShapeHandler(), position: .after(decoder))
      channel.endUntaken(afterSeconds: RequestPace().untakenSeconds)
      return value
    }
  }

  func handle(value: Value, logger: Logger) async { await base.handle(value: value, logger: logger) }
}
