import NIOCore

/// What an outlet tells its listener.
protocol FrameOutletDelegate: AnyObject {
  /// It has lost audio, or text would have been lost, for too long: the connection cannot be kept.
  func outletGaveUp(_ outlet: FrameOutlet, because reason: String)

  /// What waits for the client has become more, or less where it is negative.
  func outlet(_ outlet: FrameOutlet, changedWaitingBy byteCount: Int)

  /// Of the audio that waits.
  func outlet(_ outlet: FrameOutlet, changedAudioBy byteCount: Int)

  /// Whether so much more audio may wait.
  func outlet(_ outlet: FrameOutlet, hasAudioRoomFor byteCount: Int) -> Bool

  /// The client has sent something.
  ///
  /// - Returns: whether it is to be decoded now.
  func outlet(_ outlet: FrameOutlet, takes bytes: ByteBuffer) -> Bool

  /// What was to be decoded is.
  func outletHasPassedOn(_ outlet: FrameOutlet)
}

/// Writes finished frames to one WebSocket. First in the pipeline, so that its context writes to the
/// socket itself, below NIO's frame encoder: a frame shared by a thousand listeners is encoded once. While nothing
/// waits, here or in NIO, `PacketPath` writes to the socket without asking (`port`).
final class FrameOutlet: ChannelDuplexHandler {
  typealias InboundIn = ByteBuffer
  typealias InboundOut = ByteBuffer
  typealias OutboundIn = ByteBuffer
  typealias OutboundOut = ByteBuffer

  weak var delegate: (any FrameOutletDelegate)?

  private let statistics: RouterStatistics
  private var context: ChannelHandlerContext?
  private let packetsPerMessage: Int
  private var outbox: Outbox
  private(set) var isWritable = true
  /// What the packet path needs of it: see `ListenerPort`.
  let port: UnsafeMutablePointer<ListenerPort>
  /// While the channel is open; −1 where it is no socket.
  private var descriptor: Int32 = -1
  private var hasUnflushedControl = false
  private var isStopped = false
  var waitingByteCount: Int { outbox.byteCount }
  /// Text that was written and that the socket has not taken yet.
  private var unsentTextByteCount = 0
  private var unsentAccountedByteCount = 0
  /// Text that the client has not read, as far as we know.
  var unreadTextByteCount: Int { outbox.textByteCount + unsentTextByteCount }
  /// What the delegate was told of.
  private(set) var accountedByteCount = 0
  /// What it was given on joining and the socket has not taken yet, of which nobody else has a part.
  private var unsentBurstByteCount = 0
  private var accountedAudioByteCount = 0
  /// Since when audio has been lost without the outbox once becoming empty.
  private var losingSince: NIODeadline?

  /// - Parameter packetsPerMessage: of its audio.
  init(statistics: RouterStatistics, packetsPerMessage: Int = 1) {
    self.statistics = statistics
    self.packetsPerMessage = packetsPerMessage
    outbox = Outbox(maximumAudioCount: RouterLimits.outboxAudioFrameCount / packetsPerMessage)
    port = .allocate(capacity: 1)
    port.initialize(to: ListenerPort(outlet: self))
  }

  deinit {
    port.deinitialize(count: 1)
    port.deallocate()
  }

  func handlerAdded(context: ChannelHandlerContext) {
    self.context = context
    isWritable = context.channel.isWritable
    if context.channel.isActive {
      descriptor =
        (try? context.channel.pipeline.syncOperations.withUnsafeTransportIfAvailable(
          of: NIOBSDSocket.Handle.self
        ) {
          $0
        }) ?? -1
    }
    updatePort()
  }

  func channelInactive(context: ChannelHandlerContext) {
    descriptor = -1
    updatePort()
    context.fireChannelInactive()
  }

  func handlerRemoved(context: ChannelHandlerContext) {
    self.context = nil
    descriptor = -1
    updatePort()
    unsentBurstByteCount = 0
    forgetOutbox()
  }

  func channelRead(context: ChannelHandlerContext, data: NIOAny) {
    let bytes = unwrapInboundIn(data)
    guard let delegate, delegate.outlet(self, takes: bytes) else { return }
    passOn(bytes)
  }

  /// Has something decoded that the client has sent.
  func passOn(_ bytes: ByteBuffer) {
    context?.fireChannelRead(wrapInboundOut(bytes))
    delegate?.outletHasPassedOn(self)
  }

  func channelWritabilityChanged(context: ChannelHandlerContext) {
    isWritable = context.channel.isWritable
    if isWritable {
      account(-unsentAccountedByteCount)
      unsentTextByteCount = 0
      unsentAccountedByteCount = 0
      unsentBurstByteCount = 0
      drain()
    }
    context.fireChannelWritabilityChanged()
  }

  /// Writes audio behind what waits, or keeps it while the listener is slow.
  func sendAudio(_ frame: ByteBuffer, sharedBy sharers: Int) {
    // Another slow listener of the same packet may have had this one closed.
    guard !isStopped else { return }
    guard isWritable, outbox.isEmpty else { return keepAudio(frame, part: frame.readableBytes / sharers) }
    write(frame, messageCount: 1)
    flush()
  }

  /// Has NIO write what the socket has not taken of a frame. `flush` follows.
  func writeRest(of frame: ByteBuffer, after byteCount: Int) {
    statistics.messagesSent += 1
    statistics.bytesSent += frame.readableBytes
    var rest = frame
    rest.moveReaderIndex(forwardBy: byteCount)
    write(rest)
  }

  /// Writes what is heard at once on joining.
  func sendBurst(_ frames: ByteBuffer, messageCount: Int) {
    guard isWritable, outbox.isEmpty else { return keepAudio(frames, part: frames.readableBytes) }
    write(frames, messageCount: messageCount)
    flush()
    guard !isWritable else { return }
    unsentBurstByteCount = frames.readableBytes
    accountAudio()
  }

  /// Writes a text message at once, in its place among the audio.
  func sendText(_ message: TextMessage) {
    // An answer that comes late is for nobody, and would be kept and accounted for without an end.
    guard context != nil, !isStopped else { return }
    if isWritable, outbox.isEmpty {
      write(message)
      flush()
      keepAccountOfUnsent(message)
    } else if outbox.appendText(message) {
      account(message.accountedByteCount)
    } else {
      delegate?.outletGaveUp(
        self, because: "\(RouterLimits.outboxTextFrameCount) messages wait to be read")
    }
  }

  /// Writes a ping, pong or close before what waits, as control frames may be.
  ///
  /// - Parameter isNeeded: false for one that a client that does not read goes without.
  func sendControl(_ frame: ByteBuffer, isNeeded: Bool) {
    guard isWritable || isNeeded else { return }
    write(frame)
    flush()
  }

  /// Writes a pong before what waits; a client that does not read goes without.
  func writeControl(_ frame: ByteBuffer) {
    guard isWritable else { return }
    write(frame)
    hasUnflushedControl = true
  }

  func flushControl() {
    if hasUnflushedControl { flush() }
  }

  func flush() {
    hasUnflushedControl = false
    context?.flush()
    updatePort()
  }

  /// Nothing but control frames is written from here on.
  func stop() {
    isStopped = true
    updatePort()
    forgetOutbox()
  }

  private func write(_ frame: ByteBuffer, messageCount: Int) {
    statistics.messagesSent += messageCount
    statistics.bytesSent += frame.readableBytes
    write(frame)
  }

  private func write(_ message: TextMessage) {
    statistics.messagesSent += 1
    statistics.bytesSent += message.byteCount
    message.forEachPart { part in write(part) }
  }

  /// Everything that NIO is to write goes through here: until it has, nothing is written past it.
  private func write(_ bytes: ByteBuffer) {
    port.pointee.descriptor = -1
    context?.write(wrapOutboundOut(bytes), promise: nil)
  }

  /// Lets packets be written to the socket itself where nothing waits before them.
  private func updatePort() {
    port.pointee.descriptor = hasNothingWaiting ? descriptor : -1
  }

  private var hasNothingWaiting: Bool {
    guard descriptor >= 0, !isStopped, isWritable, outbox.isEmpty, let options = context?.channel.syncOptions
    else {
      return false
    }
    return (try? options.getOption(.bufferedWritableBytes)) == 0
  }

  /// Of what the socket has not taken, until it takes more.
  private func keepAccountOfUnsent(_ message: TextMessage) {
    guard !isWritable, context != nil else { return }
    unsentTextByteCount += message.byteCount
    unsentAccountedByteCount += message.accountedByteCount
    account(message.accountedByteCount)
  }

  private func account(_ change: Int) {
    guard change != 0 else { return }
    accountedByteCount += change
    delegate?.outlet(self, changedWaitingBy: change)
  }

  private func accountAudio() {
    let waiting = outbox.audioPartByteCount + unsentBurstByteCount
    let change = waiting - accountedAudioByteCount
    guard abs(change) >= RouterLimits.audioStepByteCount || (waiting == 0 && change != 0) else { return }
    accountedAudioByteCount = waiting
    delegate?.outlet(self, changedAudioBy: change)
  }

  /// What the socket has not taken of what it was given on joining is there until it is closed.
  private func forgetOutbox() {
    outbox.removeAll()
    unsentTextByteCount = 0
    unsentAccountedByteCount = 0
    account(-accountedByteCount)
    accountAudio()
  }

  private func keepAudio(_ frame: ByteBuffer, part: Int) {
    guard context != nil, !isStopped else { return }
    let hasRoom = delegate?.outlet(self, hasAudioRoomFor: part) ?? true
    let hasLost = outbox.appendAudio(frame, part: part, hasRoom: hasRoom)
    accountAudio()
    guard hasLost else { return }
    statistics.droppedFrames += packetsPerMessage
    let now = NIODeadline.now()
    guard let since = losingSince else {
      losingSince = now
      return
    }
    if now - since >= .seconds(RouterLimits.losingSecondsBeforeClose) {
      delegate?.outletGaveUp(
        self,
        because: "audio was lost for \(RouterLimits.losingSecondsBeforeClose) s: the connection is too slow")
    }
  }

  /// Writes what waited, as far as the socket takes it.
  private func drain() {
    while isWritable, let item = outbox.popFirst() {
      switch item {
      case .audio(let frame, _): write(frame, messageCount: 1)
      case .text(let message):
        write(message)
        account(-message.accountedByteCount)
        keepAccountOfUnsent(message)
      }
    }
    if outbox.isEmpty { losingSince = nil }
    accountAudio()
    flush()
  }
}
