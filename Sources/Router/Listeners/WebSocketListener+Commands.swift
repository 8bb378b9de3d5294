import Collections
import NIOCore
import WireProtocol

/// What a client sends goes as fast as its budgets allow. Past them it waits here, and past that the socket is not read.
extension WebSocketListener {
  /// What has become of what waits.
  enum Advance {
    /// Nothing waits, and the socket is read.
    case free
    case held(hasMoved: Bool)
  }

  /// What it adds to what waits for its client.
  var waitingByteCount: Int { outlet.accountedByteCount + input.byteCount }

  /// A text message has come.
  func take(_ text: ByteBuffer) {
    input.texts.append(text)
    countInput(text.readableBytes)
    guard input.byteCount <= RouterLimits.maximumHeldByteCount else {
      return close(.policyViolation, "\(input.texts.count) commands wait to be carried out")
    }
    if !input.isHeld { advanceOrHold() }
  }

  /// What is no command costs too: whoever sends nothing else is not read for a while either.
  func charge() {
    budget.spend(1, now: plane.budgets.now())
    if !input.isHeld { advanceOrHold() }
  }

  /// Carries out what waits, as far as the budgets go.
  func advance() -> Advance {
    var hasMoved = false
    while !isClosing, !input.texts.isEmpty, obstacle == nil, hasItsTurn, let text = input.texts.popFirst() {
      input.turnNanoseconds = nil
      countInput(-text.readableBytes)
      read(text: text)
      hasMoved = true
    }
    let isFull =
      input.texts.count >= RouterLimits.heldCommandCount
      || input.byteCount >= RouterLimits.heldCommandByteCount
    setReading(isClosing || !(isFull || budget.isInDebt(now: plane.budgets.now())))
    input.isHeld = !isClosing && !(input.texts.isEmpty && input.isReading)
    return input.isHeld ? .held(hasMoved: hasMoved) : .free
  }

  /// Nothing of it is carried out any more.
  func dropInput() {
    input.texts.removeAll()
    input.unfinishedByteCount = 0
    countInput(-input.byteCount)
    setReading(true)
  }

  /// Counts what waits, and what has come of a message that is not whole yet.
  func countInput(_ change: Int) {
    input.byteCount += change
    plane.budgets.countWaiting(change, of: request.grant)
  }

  private func advanceOrHold() {
    guard case .held = advance() else { return }
    plane.budgets.hold(self, because: obstacle ?? .commands)
  }

  private var obstacle: ClientLimit? {
    budget.obstacle(unreadByteCount: outlet.unreadTextByteCount, now: plane.budgets.now())
      ?? plane.budgets.obstacle(request.grant)
  }

  /// Whether the token for its next command has come.
  private var hasItsTurn: Bool {
    if input.turnNanoseconds == nil {
      input.turnNanoseconds = plane.budgets.turnNanoseconds(for: request.grant)
    }
    return input.turnNanoseconds.map { $0 <= plane.budgets.now() } ?? false
  }

  private func setReading(_ isReading: Bool) {
    guard input.isReading != isReading else { return }
    input.isReading = isReading
    try? context?.channel.syncOptions?.setOption(.autoRead, value: isReading)
  }
}

/// What has come over a WebSocket and waits.
struct WebSocketInput {
  var texts: Deque<ByteBuffer> = []
  /// Of these, and of a message that is not whole yet.
  var byteCount = 0
  /// What has come since the last frame.
  var unfinishedByteCount = 0
  /// Since it was closed by us.
  var afterCloseByteCount = 0
  /// When the token comes that is reserved for the first of them.
  var turnNanoseconds: UInt64?
  var isReading = true
  /// Whether `ClientBudgets` looks after it.
  var isHeld = false
}
