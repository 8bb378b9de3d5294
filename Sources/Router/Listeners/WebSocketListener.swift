import Logging
import NIOCore
import NIOWebSocket
import ServiceSupport

/// One WebSocket: hears its session, commands it, answers pings, and says why it ends. Last in the
/// pipeline; confined to the data plane's loop.
final class WebSocketListener: ChannelInboundHandler, FrameOutletDelegate, PacedConnection {
  typealias InboundIn = WebSocketFrame

  let request: ListenRequest
  let outlet: FrameOutlet
  let plane: DataPlane
  var budget: ConnectionBudget
  var input = WebSocketInput()
  var client: ClientID { request.grant.client }
  var statistics: RouterStatistics { plane.statistics }
  private var session: RoutedSession?
  /// Whether it is counted among its client's listeners: until its channel is closed, since its buffers live as long.
  private var isCounted = false
  private(set) var context: ChannelHandlerContext?
  private(set) var isClosing = false
  /// Ends the connection where the client does not.
  private var end: Scheduled<Void>?
  private var endsAt: NIODeadline?
  private var lastHeard = NIODeadline.now()
  private var lastPing = NIODeadline.now()

  init(_ request: ListenRequest, plane: DataPlane) {
    self.request = request
    self.plane = plane
    budget = ConnectionBudget(
      factor: request.grant.limitFactor, now: plane.budgets.now())
    outlet = FrameOutlet(statistics: plane.statistics, packetsPerMessage: request.packetsPerMessage)
    outlet.delegate = self
  }

  func handlerAdded(context: ChannelHandlerContext) {
    self.context = context
    join()
  }

  func channelInactive(context: ChannelHandlerContext) {
    leave()
    releaseListenerCount()
    context.fireChannelInactive()
  }

  func handlerRemoved(context: ChannelHandlerContext) {
    leave()
    releaseListenerCount()
    isClosing = true
    self.context = nil
    dropInput()
    end?.cancel()
  }

  // MARK: Listening

  /// What it is told first is its session's queue, which may have to be read.
  private func join() {
    guard let known = plane.store.sessions[request.sessionID] else { return enter() }
    plane.withQueue(of: known, for: request.grant.client) { [self] _ in
      if context != nil, !isClosing { enter() }
    }
  }

  private func enter() {
    // The server has told those that it had, and waits for this one too.
    guard !plane.isDraining else {
      return close(.goingAway, ClosingMessage.reason, graceSeconds: RouterLimits.shutdownGraceSeconds)
    }
    guard plane.homes?.isHere(request.sessionID) != false else {
      return close(.serviceRestart, DataPlane.movedReason)
    }
    do {
      try plane.budgets.checkRoomForListener(request.grant)
      let session = try plane.store.add(self)
      plane.budgets.countListeners(1, of: request.grant)
      isCounted = true
      self.session = session
      plane.greet(self, session)
      plane.join(session, milliseconds: request.bufferMilliseconds) { [weak self] burst in
        self?.hear(session, from: burst)
      }
    } catch {
      // Checked before the upgrade; another listener was faster.
      close(.tryAgainLater, error.report.message)
    }
  }

  private func hear(_ session: RoutedSession, from burst: SoundBurst?) {
    // It may have left meanwhile.
    guard self.session === session else { return }
    if let burst {
      let (frames, messageCount) = WebSocketFrames.burst(burst, subprotocol: request.subprotocol)
      if plane.budgets.hasAudioRoom(for: frames.readableBytes, of: request.grant.client) {
        outlet.sendBurst(frames, messageCount: messageCount)
      }
    }
    guard self.session === session else { return }
    // It has had those that wait.
    plane.store.packets.completeMessages(of: session)
    session.hear(self)
  }

  private func leave() {
    guard let session else { return }
    self.session = nil
    plane.store.remove(self, from: session)
  }

  private func releaseListenerCount() {
    guard isCounted else { return }
    isCounted = false
    plane.budgets.countListeners(-1, of: request.grant)
  }

  // MARK: The outlet

  func outletGaveUp(_ outlet: FrameOutlet, because reason: String) {
    guard !isClosing else { return }
    plane.statistics.slowListenersClosed += 1
    plane.logger.info(
      "a listener is closed: \(reason)", metadata: ["session": "\(request.sessionID)"])
    close(.tryAgainLater, reason)
  }

  func outlet(_ outlet: FrameOutlet, changedWaitingBy byteCount: Int) {
    plane.budgets.countWaiting(byteCount, of: request.grant)
  }

  func outlet(_ outlet: FrameOutlet, changedAudioBy byteCount: Int) {
    plane.budgets.countAudio(byteCount, of: request.grant)
  }

  func outlet(_ outlet: FrameOutlet, hasAudioRoomFor byteCount: Int) -> Bool {
    plane.budgets.hasAudioRoom(for: byteCount, of: request.grant.client)
  }

  /// Its client has too much waiting, and this WebSocket the most of it. One that takes nothing would not read why.
  func giveUp(because reason: String) {
    outletGaveUp(outlet, because: reason)
    if !outlet.isWritable { context?.close(promise: nil) }
  }

  /// Pings, and gives up one that has been silent or whose token has expired. Called once a second.
  func runHousekeeping(now: NIODeadline) {
    guard !isClosing else { return }
    // What we do not read is no silence.
    if !input.isReading { lastHeard = now }
    if request.grant.isExpired() {
      close(.unauthorized, Grant.expiredReason)
    } else if now - lastHeard >= .seconds(RouterLimits.silenceSecondsBeforeClose) {
      close(.policyViolation, "nothing was heard for \(RouterLimits.silenceSecondsBeforeClose) s")
    } else if now - lastPing >= .seconds(RouterLimits.pingIntervalSeconds) {
      lastPing = now
      outlet.sendControl(WebSocketFrames.ping(), isNeeded: false)
    }
  }

  // MARK: What the client sends

  func channelRead(context: ChannelHandlerContext, data: NIOAny) {
    let frame = unwrapInboundIn(data)
    lastHeard = .now()
    switch frame.opcode {
    case .connectionClose: answerClose(frame)
    case _ where isClosing: break
    case .text:
      answerPing()
      take(frame.unmaskedData)
    case .binary: close(.unacceptableData, "commands are JSON text")
    case .ping: input.ping = frame
    default: break
    }
  }

  func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
    switch event {
    case is ChannelShouldQuiesceEvent:
      close(.goingAway, ClosingMessage.reason, graceSeconds: RouterLimits.shutdownGraceSeconds)
    // A client that sends no more has gone; nobody keeps half a WebSocket.
    case ChannelEvent.inputClosed: context.close(promise: nil)
    default: context.fireUserInboundEventTriggered(event)
    }
  }

  func errorCaught(context: ChannelHandlerContext, error: any Error) {
    switch error {
    case NIOWebSocketError.invalidFrameLength,
      NIOWebSocketFrameAggregator.Error.accumulatedFrameSizeIsTooLarge:
      close(.messageTooLarge, "a text message may have \(RouterLimits.maximumTextByteCount) bytes")
    case is NIOWebSocketError, is NIOWebSocketFrameAggregator.Error:
      close(.protocolError, "the frames are not as RFC 6455 has them")
    case is ByteToMessageDecoderError:
      // What follows a frame that could not be read; the close is on its way.
      break
    default: context.close(promise: nil)
    }
  }

  /// Carries out one command.
  func read(text: ByteBuffer) {
    guard String(validating: text.readableBytesView, as: UTF8.self) != nil else {
      return close(.dataInconsistentWithMessage, "the text is not UTF-8")
    }
    plane.receive(Array(text.readableBytesView), from: self)
  }

  // MARK: Closing

  /// Says why, and waits for the client to close its side, for a while.
  func close(
    _ code: WebSocketErrorCode, _ reason: String, graceSeconds: Int64 = RouterLimits.closeGraceSeconds
  ) {
    endsLatest(afterSeconds: graceSeconds)
    guard !isClosing else { return }
    isClosing = true
    leave()
    dropInput()
    outlet.stop()
    outlet.sendControl(WebSocketFrames.close(code, reason: reason), isNeeded: true)
  }

  private func answerClose(_ frame: WebSocketFrame) {
    guard let context else { return }
    if !isClosing {
      var payload = frame.unmaskedData
      close(payload.readWebSocketErrorCode() ?? .normalClosure, "")
    }
    context.close(promise: nil)
  }

  /// One timer, whatever the client still sends; an earlier end replaces a later one.
  private func endsLatest(afterSeconds seconds: Int64) {
    let deadline = NIODeadline.now() + .seconds(seconds)
    guard endsAt.map({ deadline < $0 }) ?? true else { return }
    endsAt = deadline
    end?.cancel()
    end = plane.eventLoop.assumeIsolated().scheduleTask(deadline: deadline) { [weak self] in
      self?.context?.close(promise: nil)
    }
  }
}

extension WebSocketErrorCode {
  /// 1012: the client finds what it wants when it connects again (IANA's registry of RFC 6455).
  static let serviceRestart = WebSocketErrorCode(codeNumber: 1012)
  /// 1013: the server cannot serve this client now.
  static let tryAgainLater = WebSocketErrorCode(codeNumber: 1013)
  /// 4401, of the codes for private use: what was let in may not stay. As HTTP's 401.
  static let unauthorized = WebSocketErrorCode(codeNumber: 4401)
}
