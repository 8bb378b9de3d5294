import NIOCore

/// The other end of a forwarded connection: the one to the session's home. What it reads is the client's.
final class ForwardedPeer: ChannelDuplexHandler {
  typealias InboundIn = ByteBuffer
  typealias OutboundIn = ByteBuffer
  typealias OutboundOut = ByteBuffer

  private let forwarder: SessionForwarder
  private var context: ChannelHandlerContext?
  private var isReadPending = false

  init(_ forwarder: SessionForwarder) {
    self.forwarder = forwarder
  }

  var isWritable: Bool { context?.channel.isWritable ?? false }

  func write(_ bytes: ByteBuffer) { context?.write(wrapOutboundOut(bytes), promise: nil) }

  func flush() { context?.flush() }

  func close() { context?.close(promise: nil) }

  /// The client takes more.
  func readIfPending() {
    guard isReadPending, forwarder.canTake else { return }
    isReadPending = false
    context?.read()
  }

  func handlerAdded(context: ChannelHandlerContext) { self.context = context }

  func handlerRemoved(context: ChannelHandlerContext) { self.context = nil }

  func read(context: ChannelHandlerContext) {
    if forwarder.canTake { context.read() } else { isReadPending = true }
  }

  func channelRead(context: ChannelHandlerContext, data: NIOAny) { forwarder.answered(unwrapInboundIn(data)) }

  func channelReadComplete(context: ChannelHandlerContext) {
    forwarder.flush()
    context.fireChannelReadComplete()
  }

  func channelWritabilityChanged(context: ChannelHandlerContext) {
    forwarder.readIfPending()
    context.fireChannelWritabilityChanged()
  }

  func channelInactive(context: ChannelHandlerContext) {
    forwarder.peerClosed()
    context.fireChannelInactive()
  }

  func errorCaught(context: ChannelHandlerContext, error: any Error) { context.close(promise: nil) }
}
