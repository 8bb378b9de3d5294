import Collections
import NIOCore

/// Writes finished messages to one client of `/stream`. First in the pipeline, so that it writes to the socket
/// itself, below Hummingbird's and NIO's encoders: a message for a thousand clients is put into its chunk once.
/// Confined to the data plane's loop.
final class StreamOutlet: ChannelDuplexHandler, RemovableChannelHandler {
  typealias InboundIn = ByteBuffer
  typealias OutboundIn = ByteBuffer
  typealias OutboundOut = ByteBuffer

  /// Told that it can write again.
  var onWritable: () -> Void = {}
  /// Told that the connection is gone.
  var onClosed: () -> Void = {}
  /// Told each piece that has been taken whole, or is taken no more.
  var onReleased: (StreamPiece) -> Void = { _ in }

  private var context: ChannelHandlerContext?
  private var queue: Deque<ByteBuffer> = []
  /// Pieces of which not all is taken: the bytes up to each one's end, counted like `writtenByteCount`.
  private var held: Deque<(piece: StreamPiece, endByteCount: Int)> = []
  /// Whether a part of the first message has been written, so that the rest has to follow.
  private(set) var isInsideMessage = false
  /// What waits here, and what NIO has and the kernel not yet.
  private var queuedByteCount = 0
  private var unflushedByteCount = 0
  private var drained: [EventLoopPromise<Void>] = []
  /// Given to the kernel.
  private(set) var writtenByteCount = 0
  /// When something was last taken of what waits, or began to wait.
  private(set) var waitingSince = NIODeadline.now()

  var waitingByteCount: Int { queuedByteCount + unflushedByteCount }
  var holdsPieces: Bool { !held.isEmpty }
  var canWrite: Bool { !queue.isEmpty && context?.channel.isWritable == true }

  func handlerAdded(context: ChannelHandlerContext) {
    self.context = context
  }

  func handlerRemoved(context: ChannelHandlerContext) {
    close()
  }

  func channelInactive(context: ChannelHandlerContext) {
    close()
    context.fireChannelInactive()
  }

  /// A client that sends no more has gone: nobody keeps half an event stream, and one that only listened would be
  /// found out at its next heartbeat alone.
  func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
    if case ChannelEvent.inputClosed = event { context.close(promise: nil) }
    context.fireUserInboundEventTriggered(event)
  }

  func channelWritabilityChanged(context: ChannelHandlerContext) {
    if context.channel.isWritable { onWritable() }
    context.fireChannelWritabilityChanged()
  }

  /// Has a message written in its turn.
  ///
  /// - Returns: false where so much waits that the client must be given up.
  func send(_ frame: ByteBuffer, of piece: StreamPiece? = nil) -> Bool {
    guard context != nil else {
      if let piece { onReleased(piece) }
      return true
    }
    // The new one is not looked at: one message may be larger than all that may wait before it.
    guard queue.count < RouterLimits.streamMessageCount, queuedByteCount <= RouterLimits.streamByteCount
    else {
      if let piece { onReleased(piece) }
      return false
    }
    if waitingByteCount == 0 { waitingSince = .now() }
    queue.append(frame)
    queuedByteCount += frame.readableBytes
    if let piece { held.append((piece, writtenByteCount + waitingByteCount)) }
    return true
  }

  /// Nothing that waits is sent but the rest of a message that has begun, and that one.
  func sendLast(_ frame: ByteBuffer) {
    let rest = isInsideMessage ? queue.popFirst() : nil
    queue = Deque([rest, frame].compactMap(\.self))
    queuedByteCount = queue.reduce(0) { $0 + $1.readableBytes }
    let lastByteCount = writtenByteCount + unflushedByteCount + (rest?.readableBytes ?? 0)
    while let last = held.last, last.endByteCount > lastByteCount { onReleased(held.removeLast().piece) }
  }

  /// Writes a part of what waits.
  func writeSlice() {
    guard let context, context.channel.isWritable, var frame = queue.popFirst() else { return }
    let count = min(frame.readableBytes, RouterLimits.streamSliceByteCount)
    guard let slice = frame.readSlice(length: count) else { return }
    isInsideMessage = frame.readableBytes > 0
    if isInsideMessage { queue.prepend(frame) }
    queuedByteCount -= count
    unflushedByteCount += count
    let promise = context.eventLoop.makePromise(of: Void.self)
    promise.futureResult.assumeIsolated().whenSuccess { [weak self] in self?.taken(count) }
    context.writeAndFlush(wrapOutboundOut(slice), promise: promise)
  }

  /// Completes when nothing waits, or nothing can be sent any more.
  func whenDrained() -> EventLoopFuture<Void>? {
    guard let context, waitingByteCount > 0 else { return nil }
    let promise = context.eventLoop.makePromise(of: Void.self)
    drained.append(promise)
    return promise.futureResult
  }

  private func taken(_ byteCount: Int) {
    unflushedByteCount -= byteCount
    writtenByteCount += byteCount
    waitingSince = .now()
    while let first = held.first, first.endByteCount <= writtenByteCount {
      onReleased(held.removeFirst().piece)
    }
    if waitingByteCount == 0 { finishWaiting() }
  }

  private func finishWaiting() {
    let promises = drained
    drained = []
    for promise in promises { promise.succeed() }
  }

  private func close() {
    guard context != nil else { return }
    context = nil
    queue = []
    queuedByteCount = 0
    while let next = held.popFirst() { onReleased(next.piece) }
    finishWaiting()
    onClosed()
  }
}
