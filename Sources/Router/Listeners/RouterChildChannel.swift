import HTTPLimits
import Hummingbird
import HummingbirdCore
import Logging
import NIOCore
import NIOHTTP1
import NIOHTTPTypes
import NIOHTTPTypesHTTP1
import NIOWebSocket
import ServiceSupport

/// A client's connection: WebSocket where that is asked for and allowed, and otherwise HTTP exactly as
/// Hummingbird's `HTTP1Channel` serves it. A refused upgrade goes on as a plain request, so that the
/// routes answer it with the status and the error object every other endpoint has.
struct RouterChildChannel: ServerChildChannel, HTTPChannelHandler {
  typealias HTTPValue = NIOAsyncChannel<HTTPRequestPart, HTTPResponsePart>

  /// What the first request has made of the connection.
  enum Negotiated: Sendable {
    case webSocket
    /// Another Router has it.
    case forwarded
    case http(HTTPValue)
  }

  struct Value: ServerChildChannelValue {
    let channel: any Channel
    let negotiated: EventLoopFuture<Negotiated>
  }

  let responder: HTTPChannelHandler.Responder
  let plane: DataPlaneHandle
  let requestGuard: RequestGuard
  let access: AccessControl
  let connections: ConnectionCounter
  /// Where there are several Routers: what they show with requests that they forward, and what forwards this one's.
  var relay: Relay?
  /// Called on the loop.
  var makeForwarder: (@Sendable () -> any ConnectionForwarder)?

  func setup(channel: any Channel, logger: Logger) -> EventLoopFuture<Value> {
    channel.eventLoop.makeCompletedFuture {
      // No pipelining or header handlers, as HTTP1Channel has none: they are seen to above.
      let encoder = HTTPResponseEncoder()
      let decoder = ByteToMessageHandler(
        HTTPRequestDecoder(
          leftOverBytesStrategy: .forwardBytes, limitConfiguration: RouterLimits.requestShape.decoderLimits))
      let shape = RequestShapeHandler(shape: RouterLimits.requestShape)
      // Judged once, since a ticket can be used once.
      let admitted = NIOLoopBoundBox<ListenRequest?>(nil, eventLoop: channel.eventLoop)
      let firstRequest = FirstRequestHandler { head in
        let client = relay?.client(of: head.headers) ?? channel.remoteAddress?.ipAddress
        admitted.value = try? admit(head, address: client)
        return admitted.value != nil
      }
      let upgrade = NIOTypedHTTPServerUpgradeHandler(
        httpEncoder: encoder, extraHTTPHandlers: [decoder, shape, firstRequest],
        upgradeConfiguration: .init(
          upgraders: [upgrader(admitted)],
          notUpgradingCompletionHandler: { channel in
            channel.eventLoop.makeCompletedFuture { .http(try serveHTTP(on: channel, logger: logger)) }
          }))
      // What is read at once is decoded at once, and a buffer of NIO's own holds a thousand pipelined requests.
      try channel.syncOptions?.setOption(
        .recvAllocator,
        value: AdaptiveRecvByteBufferAllocator(
          minimum: RouterLimits.quietReadByteCount, initial: RouterLimits.quietReadByteCount,
          maximum: RouterLimits.readByteCount))
      try channel.syncOptions?.setOption(.maxMessagesPerRead, value: 1)
      let pipeline = channel.pipeline.syncOperations
      try pipeline.addHandlers([
        ConnectionLimitHandler(counter: connections, address: { _ in nil }),
        PlainConnectionHandler(
          plane.onLoop.connectionSlots, budgets: plane.onLoop.budgets,
          isReceivingBody: { shape.isReceivingBody }),
      ])
      try pipeline.addHandlers([encoder, decoder, shape])
      guard let forwarder = makeForwarder?() else {
        try pipeline.addHandlers([firstRequest, upgrade])
        return Value(channel: channel, negotiated: upgrade.upgradeResultFuture)
      }
      forwarder.httpHandlers = [firstRequest, upgrade, shape, decoder, encoder]
      try pipeline.addHandlers([forwarder, firstRequest, upgrade])
      let context = NIOLoopBound(forwarder, eventLoop: channel.eventLoop)
      return Value(
        channel: channel,
        negotiated: upgrade.upgradeResultFuture.flatMapErrorThrowing { error in
          // Without its handlers there is nothing to negotiate.
          guard context.value.isForwarding else { throw error }
          return .forwarded
        })
    }
  }

  func handle(value: Value, logger: Logger) async {
    do {
      let negotiated = try await withTaskCancellationHandler {
        try await value.negotiated.get()
      } onCancel: {
        value.channel.close(promise: nil)
      }
      switch negotiated {
      case .http(let asyncChannel): await handleHTTP(asyncChannel: asyncChannel, logger: logger)
      // The pipeline serves it from here on. A task that waits for its end would hold 3 KiB a listener.
      case .webSocket, .forwarded: break
      }
    } catch {
      logger.debug("a connection ended before its first request: \(error)")
      value.channel.close(promise: nil)
    }
  }

  private func serveHTTP(on channel: any Channel, logger: Logger) throws -> HTTPValue {
    let pipeline = channel.pipeline.syncOperations
    if let context = try? pipeline.context(handlerType: FirstRequestHandler.self) {
      pipeline.removeHandler(context: context, promise: nil)
    }
    try pipeline.addHandler(HTTP1ToHTTPServerCodec(secure: false))
    try pipeline.addHandler(RequestDeadlineHandler(pace: RouterLimits.requestPace))
    try pipeline.addHandler(HTTPConnectionStateHandler(idleTimeout: nil, logger: logger))
    return try HTTPValue(
      wrappingChannelSynchronously: channel, configuration: .init(isOutboundHalfClosureEnabled: true))
  }

  // MARK: WebSocket

  private func upgrader(
    _ admitted: NIOLoopBoundBox<ListenRequest?>
  ) -> NIOTypedWebSocketServerUpgrader<Negotiated> {
    NIOTypedWebSocketServerUpgrader(
      maxFrameSize: RouterLimits.maximumTextByteCount,
      // The listener says why it closes and waits for the client to have read it.
      enableAutomaticErrorHandling: false,
      shouldUpgrade: { channel, head in
        channel.eventLoop.makeCompletedFuture {
          let offersAny = head.headers.contains(name: "Sec-WebSocket-Protocol")
          let subprotocol = try Self.request(admitted).subprotocol
          return offersAny ? ["Sec-WebSocket-Protocol": subprotocol.rawValue] : [:]
        }
      },
      upgradePipelineHandler: { channel, _ in
        channel.eventLoop.makeCompletedFuture {
          try serveWebSocket(on: channel, Self.request(admitted))
          return .webSocket
        }
      })
  }

  /// What was admitted: upgrades that were not do not come so far.
  private static func request(_ admitted: NIOLoopBoundBox<ListenRequest?>) throws -> ListenRequest {
    guard let request = admitted.value else { throw RequestError(.internal, "the upgrade was not admitted") }
    return request
  }

  /// What `GET /ws` checks as a plain request is checked here before the upgrade. A ticket is used when
  /// nothing else is in the way: a refused request goes on to that route, which says why.
  private func admit(_ head: HTTPRequestHead, address: String?) throws(RequestError) -> ListenRequest {
    guard head.uri.prefix(while: { $0 != "?" }) == "/ws" else {
      throw RequestError(.notFound, "WebSockets are at /ws")
    }
    do {
      try requestGuard.check(RequestGuard.Subject(webSocket: head))
    } catch {
      throw RequestError(error)
    }
    let credentials = AccessControl.Credentials(
      authorization: head.headers.first(name: "Authorization"),
      ticket: URI(head.uri).queryParameters.get("ticket"), address: address)
    let request = try ListenRequest(
      webSocket: head.uri, subprotocols: head.headers["Sec-WebSocket-Protocol"],
      grant: access.grant(for: credentials, takingTicket: false))
    try plane.onLoop.checkRoom(for: request)
    // Greeting one takes as long as a command. Where that is refused, the route refuses it too.
    _ = try plane.onLoop.budgets.reserve(1, for: request.grant)
    if let ticket = credentials.ticket { _ = try access.tickets.grant(of: ticket) }
    return request
  }

  private func serveWebSocket(on channel: any Channel, _ request: ListenRequest) throws {
    let plane = plane.onLoop
    let pipeline = channel.pipeline.syncOperations
    try channel.syncOptions?.setOption(
      .writeBufferWaterMark,
      value: .init(
        low: RouterLimits.channelLowWatermarkByteCount, high: RouterLimits.channelHighWatermarkByteCount))
    channel.limitKernelUnsent()
    try? channel.syncOptions?.setOption(
      .socketOption(.so_rcvbuf), value: SocketOptionValue(RouterLimits.commandKernelByteCount))
    channel.triggerUserOutboundEvent(ConnectionListens(), promise: nil)
    let listener = WebSocketListener(request, plane: plane)
    try pipeline.addHandler(listener.outlet, position: .first)
    try pipeline.addHandler(FrameMeter(listener))
    try pipeline.addHandler(
      NIOWebSocketFrameAggregator(
        minNonFinalFragmentSize: 0, maxAccumulatedFrameCount: RouterLimits.maximumFragmentCount,
        maxAccumulatedFrameSize: RouterLimits.maximumTextByteCount))
    try pipeline.addHandler(listener)
  }
}

extension Channel {
  /// Has the kernel keep little beyond what is on its way (`TCP_NOTSENT_LOWAT`, tcp(7)), so that a slow
  /// listener's loss is the Router's to see. A socket without the option is served all the same.
  func limitKernelUnsent() {
    let option = ChannelOptions.Types.SocketOption(level: .tcp, name: NIOBSDSocket.Option(rawValue: 25))
    try? syncOptions?.setOption(option, value: RouterLimits.kernelUnsentByteCount)
  }
}
