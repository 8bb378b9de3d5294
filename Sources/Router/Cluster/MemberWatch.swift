/// Decides whether a silent member, an engine or a Router at NATS, is gone. A value without a clock: times are monotonic
/// milliseconds.
///
/// The NATS server answers "no responders" at once for a member whose process has died. A frozen or disconnected member
/// does not answer.
package struct MemberWatch: Sendable, Equatable {
  package enum Action: Sendable, Equatable {
    /// To be followed by `answered`, `recordNoResponders` or `recordTimeout`.
    case ping
    /// The same after `confirmationMilliseconds`.
    case confirm
    case giveUp
  }

  /// Silence after which a member that sessions depend on is pinged: five packets.
  package static let busySilenceMilliseconds = 100
  /// The same for a member that sends heartbeats alone.
  package static let quietSilenceMilliseconds = 2_500
  /// How long to wait for the reply to a ping.
  package static let answerMilliseconds = 100
  /// Unanswered pings in a row. Pings are counted instead of time, since a Router that was itself suspended has received
  /// nothing.
  package static let maximumUnanswered = 9
  /// Delay before a first "no responders" is confirmed. A NATS server closes its connections to a lost server one after
  /// another, and announces the loss with the last of them.
  package static let confirmationMilliseconds = 10
  /// After this Router's own connection was lost, others may need longer than it does to reconnect.
  package static let reconnectionMilliseconds = 3_000
  /// After the loss of another NATS server, its clients need so long to connect to the next.
  package static let serverLossMilliseconds = 1_000

  private var heardMilliseconds: Int
  private var unanswered = 0
  private var hadNoResponders = false
  private var isAwaitingReply = false
  private var reconnectionEnds: Int

  /// - Parameter isReconnecting: whether the member may be on its way back to NATS.
  package init(now: Int, isReconnecting: Bool = false) {
    heardMilliseconds = now
    reconnectionEnds = isReconnecting ? now + Self.reconnectionMilliseconds : now
  }

  /// A NATS server was lost: the member may have been connected to it.
  package mutating func serverWasLost(now: Int) {
    reconnectionEnds = max(reconnectionEnds, now + Self.serverLossMilliseconds)
  }

  /// A message of the member has arrived, so it is connected.
  package mutating func heard(now: Int) {
    heardMilliseconds = now
    unanswered = 0
    hadNoResponders = false
    reconnectionEnds = now
  }

  /// Lets time pass.
  ///
  /// - Parameter isBusy: whether sessions depend on it: an engine's packets are due, or a Router is home of some.
  package mutating func step(now: Int, isBusy: Bool) -> Action? {
    let silence = isBusy ? Self.busySilenceMilliseconds : Self.quietSilenceMilliseconds
    guard !isAwaitingReply, unanswered > 0 || now - heardMilliseconds >= silence else { return nil }
    return ask()
  }

  /// A connection to the member has failed: it is pinged at once.
  package mutating func suspect() -> Action? { isAwaitingReply ? nil : ask() }

  private mutating func ask() -> Action {
    isAwaitingReply = true
    return .ping
  }

  package mutating func answered(now: Int) {
    isAwaitingReply = false
    heard(now: now)
  }

  package mutating func recordTimeout(now: Int) -> Action? {
    isAwaitingReply = false
    guard now >= reconnectionEnds else { return nil }
    unanswered += 1
    return unanswered >= Self.maximumUnanswered ? .giveUp : nil
  }

  /// The NATS server has answered "no responders".
  package mutating func recordNoResponders(now: Int) -> Action? {
    isAwaitingReply = false
    guard now >= reconnectionEnds else { return nil }
    guard !hadNoResponders else { return .giveUp }
    hadNoResponders = true
    isAwaitingReply = true
    return .confirm
  }
}
