import NIOCore

/// One client of `/stream`. Confined to the data plane's loop.
final class StreamClient {
  /// Made by us: nobody can take another's place.
  let id: String
  let request: StreamRequest
  let channel: any Channel
  let outlet = StreamOutlet()
  let connectedMilliseconds = Grant.nowMilliseconds
  let connected = NIODeadline.now()
  /// Succeeds when nothing more is to be written, fails when the connection is gone.
  let finished: EventLoopPromise<Void>
  /// The last piece that it was given whole.
  var lastEventID: Int
  var nextHeartbeat: NIODeadline
  /// Whether it stands among those who have something to write.
  var isReady = false
  private(set) var isEnding = false
  /// What its end has acknowledged, and when it last did so: what the kernel merely took to send shows no life.
  private var acknowledgedByteCount: UInt64 = 0
  private(set) var lastActivity = NIODeadline.now()

  init(_ request: StreamRequest, channel: any Channel, lastEventID: Int, timing: StreamTiming) {
    self.request = request
    self.channel = channel
    self.lastEventID = lastEventID
    id = KeyFile.randomHex(byteCount: 12)
    finished = channel.eventLoop.makePromise()
    nextHeartbeat = .now() + timing.heartbeat
  }

  /// Whom it is accounted to.
  var account: ClientID { request.grant.client }

  /// Ends it at once. What waits for a client that takes nothing is memory of the Router.
  func cut() {
    guard !isEnding else { return }
    isEnding = true
    finished.fail(ChannelError.eof)
    channel.close(promise: nil)
  }

  /// Says why it ends, and waits a little for the client to have read it.
  func end(_ reason: String, reconnect: Bool = true) {
    guard !isEnding else { return }
    isEnding = true
    let closeReason = StreamClosing(reason: reason, reconnect: reconnect)
    outlet.sendLast(StreamFrame.make(id: lastEventID, StreamMessage("disconnected", closeReason)))
    let (channel, finished) = (channel, finished)
    if let drained = outlet.whenDrained() {
      drained.assumeIsolated().whenComplete { _ in finished.succeed() }
    } else {
      finished.succeed()
    }
    channel.eventLoop.assumeIsolated().scheduleTask(in: .seconds(RouterLimits.streamCloseSeconds)) {
      finished.fail(ChannelError.eof)
      channel.close(promise: nil)
    }
  }

  /// Asks the kernel how much the other end has acknowledged, and when.
  func checkAcknowledgements() {
    guard let provider = channel as? any SocketOptionProvider else { return }
    // Of the size that is asked for: the kernel writes no more, and no pointer is left behind.
    let information: EventLoopFuture<TCPInformation> = provider.unsafeGetSocketOption(
      level: .tcp, name: TCPInformation.option)
    information.assumeIsolated().whenSuccess { [weak self] information in
      guard let self, information.acknowledgedByteCount > acknowledgedByteCount else { return }
      acknowledgedByteCount = information.acknowledgedByteCount
      lastActivity = .now() - information.sinceAcknowledged
    }
  }
}

/// The beginning of Linux's `struct tcp_info` (linux/tcp.h), which is only ever added to at its end.
private struct TCPInformation: Sendable {
  /// `TCP_INFO`.
  static let option = NIOBSDSocket.Option(rawValue: 11)

  private var words: [16 of UInt64]

  /// `tcpi_last_ack_recv`, at byte 56.
  var sinceAcknowledged: TimeAmount { .milliseconds(Int64(UInt32(truncatingIfNeeded: words[7]))) }

  /// `tcpi_bytes_acked`, at byte 120.
  var acknowledgedByteCount: UInt64 { words[15] }
}
