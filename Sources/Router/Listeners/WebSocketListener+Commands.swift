import NIOCore
import NIOWebSocket

/// What a client sends goes as fast as its budgets allow. Past them it waits here, and past that the socket is not
/// read.
extension WebSocketListener {
  /// What it adds to what waits for its client.
  var waitingByteCount: Int { outlet.accountedByteCount + input.byteCount }

  // MARK: Bytes and frames

  /// Bytes have come. They are decoded now, or once the client has turns again: however many WebSockets it has, they
  /// cost the loop no more than one would.
  func outlet(_ outlet: FrameOutlet, takes bytes: ByteBuffer) -> Bool {
    let byteCount = bytes.readableBytes
    if isClosing { input.afterCloseByteCount += byteCount }
    // What comes though it was not asked for comes from a client that has gone.
    guard input.undecoded == nil, input.afterCloseByteCount <= RouterLimits.inputAfterCloseByteCount else {
      context?.close(promise: nil)
      return false
    }
    guard plane.budgets.mayDecode(request.grant.client) else {
      // A copy, since little may have come in a large buffer.
      input.undecoded = ByteBuffer(bytes: bytes.readableBytesView)
      countInput(byteCount + RouterLimits.heldFrameOverheadByteCount)
      setReading(false)
      if !input.isHeld { hold(because: .commands) }
      return false
    }
    willDecode(byteCount)
    return true
  }

  /// What was let through is decoded.
  func outletHasPassedOn(_ outlet: FrameOutlet) {
    plane.budgets.spendRead(frames: input.frameCount, of: request.grant)
    input.frameCount = 0
    answerPing()
    outlet.flushControl()
    if !input.isHeld { advanceOrHold() }
  }

  /// One frame has come, whole message or not.
  func count(_ frame: WebSocketFrame) {
    input.frameCount += 1
    var change = -input.unfinishedByteCount
    input.unfinishedByteCount = 0
    if frame.opcode == .continuation || !frame.fin {
      let fragments =
        frame.fin
        ? 0 : input.fragmentsByteCount + frame.length + RouterLimits.heldFrameOverheadByteCount
      change += fragments - input.fragmentsByteCount
      input.fragmentsByteCount = fragments
    }
    countInput(change)
    if frame.opcode != .text || !frame.fin { budget.spend(1, now: plane.budgets.now()) }
  }

  /// Once for all pings of what was read.
  func answerPing() {
    guard let ping = input.ping else { return }
    input.ping = nil
    outlet.writeControl(WebSocketFrames.pong(ping.unmaskedData))
  }

  private func willDecode(_ byteCount: Int) {
    guard !isClosing else { return }
    input.unfinishedByteCount += byteCount
    countInput(byteCount)
  }

  /// - Returns: whether something was decoded.
  private func decodeWhatWaits() -> Bool {
    guard let bytes = input.undecoded, !shouldPauseReading, plane.budgets.mayDecode(request.grant.client)
    else {
      return false
    }
    input.undecoded = nil
    countInput(-bytes.readableBytes - RouterLimits.heldFrameOverheadByteCount)
    willDecode(bytes.readableBytes)
    outlet.passOn(bytes)
    return true
  }

  // MARK: Commands

  /// A text message has come.
  func take(_ text: ByteBuffer) {
    input.texts.append(text)
    countText(text, 1)
    guard input.byteCount <= RouterLimits.maximumHeldByteCount else {
      return close(.policyViolation, "\(input.texts.count) commands wait to be carried out")
    }
    if !input.isHeld { advanceOrHold() }
  }

  func advance() -> PacedProgress {
    guard context != nil else {
      input.isHeld = false
      return .free
    }
    var hasMoved = carryOut()
    while decodeWhatWaits() {
      hasMoved = true
      _ = carryOut()
    }
    setReading(input.undecoded == nil && !shouldPauseReading)
    input.isHeld = !(input.texts.isEmpty && input.isReading)
    return input.isHeld ? .held(hasMoved: hasMoved) : .free
  }

  /// - Returns: whether something was carried out.
  private func carryOut() -> Bool {
    var hasMoved = false
    while !isClosing, !input.texts.isEmpty, blockingLimit == nil, hasTurnToken,
      let text = input.texts.popFirst()
    {
      input.turnTokenNanoseconds = nil
      countText(text, -1)
      read(text: text)
      hasMoved = true
    }
    return hasMoved
  }

  /// Nothing of it is carried out any more. What is not decoded may have the client's own close.
  func dropInput() {
    input.texts.removeAll()
    input.textsByteCount = 0
    input.unfinishedByteCount = 0
    input.fragmentsByteCount = 0
    if context == nil { input.undecoded = nil }
    let undecoded = input.undecoded.map { $0.readableBytes + RouterLimits.heldFrameOverheadByteCount } ?? 0
    countInput(undecoded - input.byteCount)
    setReading(input.undecoded == nil)
  }

  /// Counts what waits, and what has come of a message that is not whole yet.
  private func countInput(_ change: Int) {
    guard change != 0 else { return }
    input.byteCount += change
    plane.budgets.countWaiting(change, of: request.grant)
  }

  /// - Parameter times: 1 for one that has come, -1 for one that has gone.
  private func countText(_ text: ByteBuffer, _ times: Int) {
    let byteCount = times * (text.readableBytes + RouterLimits.heldFrameOverheadByteCount)
    input.textsByteCount += byteCount
    countInput(byteCount)
  }

  private func advanceOrHold() {
    guard case .held = advance() else { return }
    hold(because: blockingLimit ?? .commands)
  }

  private func hold(because limit: ClientLimit) {
    input.isHeld = true
    plane.budgets.hold(self, because: limit)
  }

  /// Whether nothing more of it may be decoded: enough waits, or it has spent what it is yet to get.
  private var shouldPauseReading: Bool {
    input.texts.count >= RouterLimits.heldCommandCount
      || input.textsByteCount >= RouterLimits.heldCommandByteCount
      || budget.isInDebt(now: plane.budgets.now())
  }

  private var blockingLimit: ClientLimit? {
    budget.blockingLimit(unreadByteCount: outlet.unreadTextByteCount, now: plane.budgets.now())
      ?? plane.budgets.blockingLimit(request.grant)
  }

  /// Whether the token for its next command has come.
  private var hasTurnToken: Bool {
    if input.turnTokenNanoseconds == nil {
      input.turnTokenNanoseconds = plane.budgets.turnTokenNanoseconds(for: request.grant)
    }
    return input.turnTokenNanoseconds.map { $0 <= plane.budgets.now() } ?? false
  }

  private func setReading(_ isReading: Bool) {
    guard input.isReading != isReading else { return }
    input.isReading = isReading
    try? context?.channel.syncOptions?.setOption(.autoRead, value: isReading)
  }
}
