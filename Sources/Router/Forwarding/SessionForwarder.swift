import NIOCore
import NIOHTTP1
import NIOPosix
import ServiceSupport
import WireProtocol

/// Holds a connection's first request until the home of its session is known. Where that is another Router, the connection is
/// joined to one to that Router: bytes pass both ways unchanged, with back-pressure.
final class SessionForwarder: ConnectionForwarder, ChannelDuplexHandler, RemovableChannelHandler {
  typealias InboundIn = HTTPServerRequestPart
  typealias InboundOut = HTTPServerRequestPart
  typealias OutboundIn = HTTPServerResponsePart
  typealias OutboundOut = HTTPServerResponsePart

  private enum State {
    case new
    /// The session's home is being looked up.
    case holding(ForwardedRequest)
    /// Served by this Router, or answered.
    case passing
    case forwarded(ForwardedPeer)
    case closed
  }

  /// How often another Router is tried.
  private static let maximumAttempts = 3
  private static let switchingProtocols = "HTTP/1.1 101"

  var httpHandlers: [any RemovableChannelHandler] = []
  private(set) var isForwarding = false
  private let forwarding: SessionForwarding
  private var homes: Homes { forwarding.homes.onLoop }
  private var state = State.new
  private var context: ChannelHandlerContext?
  private var parts: [HTTPServerRequestPart] = []
  private var isReadPending = false
  private var attempts = 0
  /// Whether another Router has forwarded it here.
  private var isRelayed = false
  /// Bytes behind a WebSocket's request, until its home has accepted it.
  private var earlyBytes = ByteBuffer()
  private var responsePrefix = ""
  /// Whether client bytes are passed on: its home has accepted the WebSocket.
  private var isOpen = false
  /// Whether the home's response is still to come.
  private var expectsUpgrade = false
  private var address: ClientID?
  private var stopObserving: () -> Void = {}

  init(_ forwarding: SessionForwarding) {
    self.forwarding = forwarding
  }

  func handlerAdded(context: ChannelHandlerContext) { self.context = context }

  func handlerRemoved(context: ChannelHandlerContext) { self.context = nil }

  // MARK: The first request

  func channelRead(context: ChannelHandlerContext, data: NIOAny) {
    switch state {
    case .new: begin(context, unwrapInboundIn(data))
    // What came with the first request's head: nothing more is read until its home is known.
    case .holding: parts.append(unwrapInboundIn(data))
    case .passing: context.fireChannelRead(data)
    case .forwarded(let peer): take(peer.unwrapInboundIn(data), for: peer)
    case .closed: break
    }
  }

  private func begin(_ context: ChannelHandlerContext, _ part: HTTPServerRequestPart) {
    guard case .head(let head) = part else { return pass(context, [part]) }
    let address = context.channel.remoteAddress?.ipAddress
    let client = forwarding.relay.client(of: head.headers)
    isRelayed = client != nil
    if isRelayed { homes.routers.confirmRouterAddress(ClientID(subject: nil, address: address)) }
    guard let request = ForwardedRequest(head) else { return pass(context, [part]) }
    parts = [part]
    state = .holding(request)
    // Also where another Router forwards it, taking this one for the session's home.
    let claimant = request.createsSession ? forwarding.claimant(request, head, from: client ?? address) : nil
    find(homes.destination(of: request.session, claimant: claimant), claimant)
  }

  private func pass(_ context: ChannelHandlerContext, _ parts: [HTTPServerRequestPart]) {
    state = .passing
    for part in parts { context.fireChannelRead(wrapInboundOut(part)) }
    context.fireChannelReadComplete()
    if isReadPending { context.read() }
    context.pipeline.syncOperations.removeHandler(context: context, promise: nil)
  }

  private func find(_ destination: EventLoopFuture<Homes.Destination?>, _ claimant: ClientID?) {
    destination.assumeIsolated().whenComplete { [self] result in
      guard case .holding(let request) = state, let context else { return }
      switch result {
      case .success(nil), .success(.here): pass(context, parts)
      // A request is forwarded only once: the Router that forwarded it looks up the home again.
      case .success(.router) where isRelayed: refuse(RequestError.moved(request.session))
      case .success(.router(let router)): connect(to: router, request, claimant)
      case .failure(let error):
        refuse((error as? RequestError) ?? RequestError(.internal, "an internal error; the log has the rest"))
      }
    }
  }

  // MARK: The connection to the home

  private func connect(to router: RouterHeartbeat, _ request: ForwardedRequest, _ claimant: ClientID?) {
    guard let context else { return }
    attempts += 1
    guard let place = ListenAddress(router.address) else { return retry(router, request, claimant) }
    let peer = ForwardedPeer(self)
    let held = NIOLoopBound(peer, eventLoop: context.eventLoop)
    ClientBootstrap(group: context.eventLoop)
      .connectTimeout(.milliseconds(RouterLimits.forwardConnectMilliseconds))
      .channelOption(
        .socketOption(.so_rcvbuf), value: SocketOptionValue(RouterLimits.forwardedKernelByteCount)
      )
      .channelOption(.tcpOption(.tcp_nodelay), value: 1)
      .channelOption(.writeBufferWaterMark, value: Self.watermark)
      .channelInitializer { channel in
        channel.eventLoop.makeCompletedFuture { try channel.pipeline.syncOperations.addHandler(held.value) }
      }
      .connect(host: place.host, port: place.port)
      .assumeIsolated()
      .whenComplete { [self] result in
        switch result {
        case .success: connected(peer, router, request)
        case .failure(let error):
          forwarding.logger.debug("the Router at \(router.address) cannot be reached: \(error)")
          retry(router, request, claimant)
        }
      }
  }

  private static let watermark = ChannelOptions.Types.WriteBufferWaterMark(
    low: RouterLimits.forwardedLowWatermarkByteCount, high: RouterLimits.forwardedHighWatermarkByteCount)

  private func retry(_ router: RouterHeartbeat, _ request: ForwardedRequest, _ claimant: ClientID?) {
    guard case .holding = state else { return }
    guard attempts < Self.maximumAttempts else {
      return refuse(
        RequestError(
          .routerUnavailable, "the Router that runs the session \(request.session) cannot be reached",
          hint: "try again"))
    }
    find(homes.destination(of: request.session, claimant: claimant, after: router), claimant)
  }

  private func connected(_ peer: ForwardedPeer, _ router: RouterHeartbeat, _ request: ForwardedRequest) {
    guard case .holding = state, let context else { return peer.close() }
    let client = context.channel.remoteAddress?.ipAddress
    let address = ClientID(subject: nil, address: client)
    do {
      try homes.enterForwarded(address)
    } catch {
      peer.close()
      return refuse(error)
    }
    self.address = address
    isForwarding = true
    state = .forwarded(peer)
    // Of a forwarded connection only the first request's head is used.
    parts = []
    stopObserving = homes.observeHome(of: request.session, at: router.router) { [weak self] in self?.moved() }
    try? context.channel.syncOptions?.setOption(.writeBufferWaterMark, value: Self.watermark)
    context.channel.limitKernelUnsent()
    context.channel.triggerUserOutboundEvent(ConnectionListens(), promise: nil)
    expectsUpgrade = request.isWebSocket
    for handler in httpHandlers {
      context.pipeline.syncOperations.removeHandler(handler).assumeIsolated().whenFailure { _ in
        self.close()
      }
    }
    httpHandlers = []
    peer.write(request.bytes(secret: router.relaySecret, client: client ?? "unknown"))
    peer.flush()
    readIfPending()
  }

  /// The session has another home. Messages of the former one may still be under way.
  private func moved() {
    guard let context else { return }
    let wait = TimeAmount.milliseconds(RouterLimits.movedGraceMilliseconds)
    context.eventLoop.assumeIsolated().scheduleTask(in: wait) { [weak self] in self?.close() }
  }

  private func refuse(_ requestError: RequestError) {
    guard let context else { return }
    state = .closed
    let body = JSON.encode(requestError.report)
    var head = HTTPResponseHead(
      version: .http1_1, status: HTTPResponseStatus(statusCode: requestError.status),
      headers: [
        "Content-Type": "application/json", "Content-Length": "\(body.count)", "Connection": "close",
        "Cache-Control": "no-store", "X-Content-Type-Options": "nosniff",
      ])
    head.headers.add(name: "Retry-After", value: "\(RouterLimits.retryAfterSeconds)")
    context.write(wrapOutboundOut(.head(head)), promise: nil)
    context.write(wrapOutboundOut(.body(.byteBuffer(ByteBuffer(bytes: body)))), promise: nil)
    let channel = context.channel
    context.writeAndFlush(wrapOutboundOut(.end(nil))).assumeIsolated().whenComplete { _ in
      channel.close(promise: nil)
    }
  }

  // MARK: Bytes

  /// Whether the client takes more.
  var canTake: Bool { context?.channel.isWritable ?? true }

  /// The home has sent something.
  func answered(_ bytes: ByteBuffer) {
    guard case .forwarded(let peer) = state, let context else { return }
    if expectsUpgrade { checkUpgradeResponse(bytes, peer) }
    context.write(peer.wrapOutboundOut(bytes), promise: nil)
  }

  /// Passes client bytes on only after the home's 101 response: anything else behind the request could be a second request,
  /// which has not been checked.
  private func checkUpgradeResponse(_ bytes: ByteBuffer, _ peer: ForwardedPeer) {
    let wanted = Self.switchingProtocols
    responsePrefix += String(decoding: bytes.readableBytesView.prefix(wanted.utf8.count), as: UTF8.self)
    guard responsePrefix.utf8.count >= wanted.utf8.count else { return }
    expectsUpgrade = false
    guard responsePrefix.hasPrefix(wanted) else { return }
    isOpen = true
    if earlyBytes.readableBytes > 0 {
      peer.write(earlyBytes)
      peer.flush()
      earlyBytes = ByteBuffer()
    }
    readIfPending()
  }

  func flush() { context?.flush() }

  private func take(_ bytes: ByteBuffer, for peer: ForwardedPeer) {
    if isOpen { return peer.write(bytes) }
    var bytes = bytes
    earlyBytes.writeBuffer(&bytes)
    if earlyBytes.readableBytes > RouterLimits.forwardedEarlyByteCount { close() }
  }

  func read(context: ChannelHandlerContext) {
    switch state {
    case .new, .passing: context.read()
    case .forwarded(let peer) where isOpen && peer.isWritable: context.read()
    case .forwarded, .holding: isReadPending = true
    case .closed: break
    }
  }

  /// The home's connection is writable again.
  func readIfPending() {
    guard isReadPending, isOpen, case .forwarded(let peer) = state, peer.isWritable else { return }
    isReadPending = false
    context?.read()
  }

  func channelReadComplete(context: ChannelHandlerContext) {
    switch state {
    case .forwarded(let peer): peer.flush()
    case .holding, .closed: break
    case .new, .passing: context.fireChannelReadComplete()
    }
  }

  func channelWritabilityChanged(context: ChannelHandlerContext) {
    if case .forwarded(let peer) = state { peer.readIfPending() }
    context.fireChannelWritabilityChanged()
  }

  // MARK: The end

  /// The home has closed: what it has sent still goes to the client.
  func peerClosed() {
    guard case .forwarded(let peer) = state, let context else { return }
    state = .closed
    leave()
    let channel = context.channel
    let wait = TimeAmount.seconds(RouterLimits.closeGraceSeconds)
    let timer = context.eventLoop.assumeIsolated().scheduleTask(in: wait) { channel.close(promise: nil) }
    context.writeAndFlush(peer.wrapOutboundOut(ByteBuffer())).assumeIsolated().whenComplete { _ in
      timer.cancel()
      channel.close(promise: nil)
    }
  }

  func channelInactive(context: ChannelHandlerContext) {
    close()
    context.fireChannelInactive()
  }

  func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
    switch (state, event) {
    // A client that has closed its side is gone, and so is one whose Router is stopping.
    case (.forwarded, ChannelEvent.inputClosed), (.forwarded, is ChannelShouldQuiesceEvent): close()
    default: context.fireUserInboundEventTriggered(event)
    }
  }

  func errorCaught(context: ChannelHandlerContext, error: any Error) {
    guard case .forwarded = state else { return context.fireErrorCaught(error) }
    close()
  }

  private func close() {
    if case .forwarded(let peer) = state {
      state = .closed
      leave()
      peer.close()
    }
    state = .closed
    context?.close(promise: nil)
  }

  private func leave() {
    stopObserving()
    if let address { homes.leaveForwarded(address) }
    address = nil
  }
}
