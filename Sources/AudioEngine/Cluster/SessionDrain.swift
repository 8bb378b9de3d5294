/// How long an engine that is to stop plays on, so that its sessions can be moved to others while they are heard.
package struct SessionDrain: Sendable {
  package static let defaultSeconds = 10
  package static let secondsRange = 0...300
  /// Between two looks at what still plays.
  package static let intervalMilliseconds = 50

  let limitSeconds: Int

  /// - Parameter limitSeconds: 0 for at once.
  package init(limitSeconds: Int) { self.limitSeconds = limitSeconds }

  /// Waits until no session is left, or for as long as it may.
  ///
  /// - Parameters:
  ///   - sessionCount: how many are left now.
  ///   - pause: lets so many milliseconds pass.
  /// - Returns: how many are left.
  package func run(sessionCount: () -> Int, pause: (_ milliseconds: Int) async -> Void) async -> Int {
    var left = sessionCount()
    for _ in 0..<limitSeconds * 1_000 / Self.intervalMilliseconds where left > 0 {
      await pause(Self.intervalMilliseconds)
      left = sessionCount()
    }
    return left
  }
}
