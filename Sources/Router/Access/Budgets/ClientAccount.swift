/// What one client has and may still have. A value that knows no clock and no loop.
package struct ClientAccount: Sendable {
  /// The largest that the client has shown.
  package private(set) var factor: Int
  private var commands: TokenBucket
  private var turns: TokenBucket
  package private(set) var inFlight = 0
  /// WebSockets and players.
  package var listeners = 0
  /// What its WebSockets have not read, and what of them is yet to be carried out.
  package var waitingByteCount = 0
  /// Audio that its listeners have not taken.
  package var audioByteCount = 0

  /// - Parameters:
  ///   - factor: how many times the usual limits its limits are.
  ///   - now: `MonotonicClock.nowNanoseconds`.
  package init(factor: Int, now: UInt64) {
    self.factor = factor
    commands = TokenBucket(Self.commandRate(factor), now: now)
    turns = TokenBucket(
      .init(burst: RouterLimits.clientTurnBurst, perSecond: RouterLimits.clientTurnsPerSecond), now: now)
  }

  /// Another connection of the same client may have another token.
  package mutating func allow(factor: Int, now: UInt64) {
    guard factor > self.factor else { return }
    self.factor = factor
    commands.change(Self.commandRate(factor), now: now)
  }

  /// Whether nothing is lost where it is forgotten.
  package func isIdle(now: UInt64) -> Bool {
    holdsNothing && commands.isFull(now: now)
  }

  package var holdsNothing: Bool {
    inFlight == 0 && listeners == 0 && waitingByteCount == 0 && audioByteCount == 0
  }

  // MARK: Commands

  /// What another command of a WebSocket has to wait for besides its token; nil for nothing.
  package func blockingLimit(now: UInt64) -> ClientLimit? {
    if !turns.hasTokens(now: now) { return .commands }
    return inFlight >= RouterLimits.clientCommandsInFlight * factor ? .inFlight : nil
  }

  /// - Parameter reserved: how many of its tokens were reserved before.
  package mutating func spend(_ cost: Int, reserved: Int = 0, now: UInt64) {
    commands.take(cost - reserved, now: now)
    turns.take(cost, now: now)
  }

  /// Takes what a request or the next command of a WebSocket costs. All who wait are served in the order in which
  /// they have come, over whatever endpoint.
  ///
  /// - Returns: the seconds it has to wait; nothing was taken where that is over `RouterLimits.requestWaitSeconds`.
  package mutating func reserve(_ cost: Int, now: UInt64) -> Double {
    commands.reserve(cost, longest: RouterLimits.requestWaitSeconds, now: now)
  }

  // MARK: Frames

  /// Whether more of what its WebSockets send may be decoded.
  package func mayDecode(now: UInt64) -> Bool { turns.hasTokens(now: now) }

  /// Takes what reading from a WebSocket once has cost.
  ///
  /// - Parameter frames: how many frames came of it.
  package mutating func spendRead(frames: Int, now: UInt64) {
    turns.take(
      1 / RouterLimits.readsPerTurnToken + Double(frames) / RouterLimits.framesPerTurnToken, now: now)
  }

  // MARK: In flight

  /// - Parameter cost: negative once they were answered.
  package mutating func countInFlight(_ cost: Int) { inFlight += cost }

  // MARK: Connections

  package var hasRoomForListener: Bool { listeners < RouterLimits.clientListeners * factor }

  package var hasTooMuchWaiting: Bool { waitingByteCount > RouterLimits.clientWaitingByteCount * factor }

  /// - Parameter total: what waits for all clients.
  package func hasAudioRoom(for byteCount: Int, total: Int) -> Bool {
    let own = audioByteCount + byteCount
    return own <= RouterLimits.littleAudioByteCount
      || (own <= RouterLimits.clientAudioByteCount * factor
        && total + byteCount <= RouterLimits.allClientsAudioByteCount)
  }

  private static func commandRate(_ factor: Int) -> TokenBucket.Rate {
    TokenBucket.Rate(
      burst: RouterLimits.clientCommandBurst, perSecond: Double(RouterLimits.clientCommandsPerSecond))
      * factor
  }
}
