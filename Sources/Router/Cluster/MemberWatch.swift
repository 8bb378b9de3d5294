/// Decides whether a member at NATS, an engine or a Router, that has fallen silent is gone. A value without a clock: times
/// are monotonic milliseconds.
///
/// The NATS server knows at once of a member whose process has died, and answers for it that nobody is there. One that
/// is frozen, or cut off with its server, answers nothing.
package struct MemberWatch: Sendable, Equatable {
  package enum Action: Sendable, Equatable {
    /// To be followed by `answered`, `isAbsent` or `didNotAnswer`.
    case ping
    /// The same after `confirmationMilliseconds`.
    case confirm
    case giveUp
  }

  /// Silence after which a member that sessions depend on is asked: five packets.
  package static let busySilenceMilliseconds = 100
  /// And one that has nothing to send but heartbeats.
  package static let quietSilenceMilliseconds = 2_500
  /// How long an answer is waited for.
  package static let answerMilliseconds = 100
  /// Unanswered questions in a row. They are counted, and not the time: a Router that has been stopped itself has heard
  /// nobody.
  package static let maximumUnanswered = 9
  /// How long after the first word that nobody is there it is asked again. A NATS server closes several connections to
  /// another one that is lost, and says that it is lost with the last of them.
  package static let confirmationMilliseconds = 10
  /// After our own connection was lost, others may take longer than we to be connected again.
  package static let reconnectionMilliseconds = 3_000
  /// After a NATS server was lost that is not ours, those that were connected to it need so long to be at another.
  package static let serverLossMilliseconds = 1_000

  private var heardMilliseconds: Int
  private var unanswered = 0
  private var isMissed = false
  private var isAsking = false
  private var reconnectionEnds: Int

  /// - Parameter isReconnecting: whether the member may be on its way back to NATS.
  package init(now: Int, isReconnecting: Bool = false) {
    heardMilliseconds = now
    reconnectionEnds = isReconnecting ? now + Self.reconnectionMilliseconds : now
  }

  /// A NATS server is lost: the member may have been connected to it.
  package mutating func serverWasLost(now: Int) {
    reconnectionEnds = max(reconnectionEnds, now + Self.serverLossMilliseconds)
  }

  /// Anything has come of it, so that it is connected.
  package mutating func heard(now: Int) {
    heardMilliseconds = now
    unanswered = 0
    isMissed = false
    reconnectionEnds = now
  }

  /// Lets time pass.
  ///
  /// - Parameter isBusy: whether sessions depend on it: an engine's packets are due, or a Router is home of some.
  package mutating func step(now: Int, isBusy: Bool) -> Action? {
    let silence = isBusy ? Self.busySilenceMilliseconds : Self.quietSilenceMilliseconds
    guard !isAsking, unanswered > 0 || now - heardMilliseconds >= silence else { return nil }
    return ask()
  }

  /// A connection to it has failed: it is asked without waiting.
  package mutating func lost() -> Action? { isAsking ? nil : ask() }

  private mutating func ask() -> Action {
    isAsking = true
    return .ping
  }

  package mutating func answered(now: Int) {
    isAsking = false
    heard(now: now)
  }

  package mutating func didNotAnswer(now: Int) -> Action? {
    isAsking = false
    guard now >= reconnectionEnds else { return nil }
    unanswered += 1
    return unanswered >= Self.maximumUnanswered ? .giveUp : nil
  }

  /// The NATS server says that nobody answers.
  package mutating func isAbsent(now: Int) -> Action? {
    isAsking = false
    guard now >= reconnectionEnds else { return nil }
    guard !isMissed else { return .giveUp }
    isMissed = true
    isAsking = true
    return .confirm
  }
}
