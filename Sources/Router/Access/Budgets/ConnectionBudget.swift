/// What one WebSocket may ask for. A value that knows no clock and no loop.
package struct ConnectionBudget: Sendable {
  private var commands: TokenBucket
  package private(set) var inFlight = 0
  private let maximumInFlight: Int

  /// - Parameters:
  ///   - factor: how many times the usual limits its limits are.
  ///   - now: `MonotonicClock.nowNanoseconds`.
  package init(factor: Int, now: UInt64) {
    commands = TokenBucket(
      TokenBucket.Rate(
        burst: RouterLimits.connectionCommandBurst, perSecond: RouterLimits.connectionCommandsPerSecond)
        * factor,
      now: now)
    maximumInFlight = RouterLimits.connectionCommandsInFlight * factor
  }

  /// What its next command has to wait for; nil for nothing.
  ///
  /// - Parameter unreadByteCount: text that the client has not read.
  package func blockingLimit(unreadByteCount: Int, now: UInt64) -> ClientLimit? {
    if !commands.hasTokens(now: now) { return .commands }
    if inFlight >= maximumInFlight { return .inFlight }
    return unreadByteCount > RouterLimits.unreadTextByteCount ? .unreadText : nil
  }

  /// Whether it has spent what it is yet to get.
  package func isInDebt(now: UInt64) -> Bool { !commands.hasTokens(now: now) }

  package mutating func spend(_ cost: Int, now: UInt64) { commands.take(cost, now: now) }

  /// - Parameter cost: negative once they were answered.
  package mutating func countInFlight(_ cost: Int) { inFlight += cost }
}
