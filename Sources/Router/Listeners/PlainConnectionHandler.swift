import HTTPLimits
import NIOCore

/// The connection's answer goes on for as long as somebody listens: it takes up no plain connection's place any more.
struct ConnectionListens: Sendable {}

/// Has a connection read only while it has a place among the plain ones. Near the front of a pipeline: it works on
/// bytes.
final class PlainConnectionHandler: ChannelDuplexHandler {
  typealias InboundIn = ByteBuffer
  typealias OutboundIn = ByteBuffer

  private enum State {
    case new, waiting, admitted
    /// A WebSocket, a player, an event stream; or over.
    case left
  }

  private let slots: ConnectionSlots
  private let budgets: ClientBudgets
  /// Whether a request has begun whose body is not all there.
  private let isReceivingBody: () -> Bool
  /// Known once the connection is active.
  private var address = ClientID(subject: nil, address: nil)
  private var state = State.new
  private var context: ChannelHandlerContext?
  private var isReadRequested = false
  /// What has come though nothing was asked for.
  private var unsolicitedByteCount = 0
  /// Some of what has come was left out: nothing behind it can be read.
  private var isCut = false

  init(
    _ slots: ConnectionSlots, budgets: ClientBudgets, isReceivingBody: @escaping () -> Bool
  ) {
    self.slots = slots
    self.budgets = budgets
    self.isReceivingBody = isReceivingBody
  }

  func handlerAdded(context: ChannelHandlerContext) {
    self.context = context
    if context.channel.isActive { enter(context) }
  }

  func handlerRemoved(context: ChannelHandlerContext) {
    leave()
    self.context = nil
  }

  func channelActive(context: ChannelHandlerContext) {
    enter(context)
    context.fireChannelActive()
  }

  func channelInactive(context: ChannelHandlerContext) {
    leave()
    context.fireChannelInactive()
  }

  /// What waits is not read.
  func read(context: ChannelHandlerContext) {
    guard state != .waiting else { return }
    isReadRequested = true
    context.read()
  }

  /// NIO reads what a client has sent before it went, whether that was asked for or not: megabytes of pipelined
  /// requests, all in one turn of the loop.
  func channelRead(context: ChannelHandlerContext, data: NIOAny) {
    guard state != .waiting else { return }
    // A WebSocket turns reading on and off, which asks behind this handler.
    if state == .admitted, !isReadRequested { countUnasked(unwrapInboundIn(data).readableBytes) }
    // Before it is handed on: anyone who takes it may ask for more at once.
    isReadRequested = false
    if !isCut { context.fireChannelRead(data) }
  }

  private func countUnasked(_ byteCount: Int) {
    unsolicitedByteCount += byteCount
    let most = isReceivingBody() ? RouterLimits.unsolicitedBodyByteCount : RouterLimits.unsolicitedByteCount
    if unsolicitedByteCount > most || !budgets.takeUnsolicited(byteCount, of: address) { isCut = true }
  }

  func triggerUserOutboundEvent(
    context: ChannelHandlerContext, event: Any, promise: EventLoopPromise<Void>?
  ) {
    guard event is ConnectionListens else {
      return context.triggerUserOutboundEvent(event, promise: promise)
    }
    // Anyone who listens has a rule of its own for who does not.
    context.channel.endUntaken(afterSeconds: 0)
    leave()
    promise?.succeed()
  }

  /// There is a place now.
  func admit() {
    state = .admitted
    isReadRequested = true
    context?.read()
  }

  private func enter(_ context: ChannelHandlerContext) {
    guard case .new = state else { return }
    address = ClientID(subject: nil, address: context.channel.remoteAddress?.ipAddress)
    context.channel.endUntaken(afterSeconds: RouterLimits.requestPace.untakenSeconds)
    switch slots.enter(self, of: address) {
    case .admitted: state = .admitted
    case .waits: state = .waiting
    case .refused:
      state = .left
      context.close(promise: nil)
    }
  }

  private func leave() {
    let last = state
    state = .left
    switch last {
    case .admitted: slots.leave(address)
    case .waiting: slots.giveUp(self, of: address)
    case .new, .left: break
    }
  }
}
