/// How often, and after what pauses, a broken transfer is taken up again. What is used up comes back with
/// progress, so that a source may break as often as it likes while its sound goes on.
package struct ReconnectBudget {
  /// In a row, without progress: about nine seconds.
  package static let maximumCost = 8
  /// A server that says nothing at all has already cost a whole time limit.
  static let timeoutCost = 3
  /// Bytes delivered that count as progress: a tenth of a second of WAV, a second of MP3.
  package static let progressByteCount: Int64 = 16_384
  private static let shortestPauseMilliseconds = 100
  private static let longestPauseMilliseconds = 2_000

  private var used = 0
  private var tries = 0
  private var deliveredAtBreak: Int64 = 0

  package init() {}

  /// The pause before the next try, in milliseconds; nil when the budget is used up.
  ///
  /// - Parameter deliveredByteCount: what has been read of the source altogether.
  package mutating func nextPause(deliveredByteCount: Int64, isTimeout: Bool) -> Int? {
    noteProgress(deliveredByteCount)
    used += isTimeout ? Self.timeoutCost : 1
    guard used <= Self.maximumCost else { return nil }
    defer { tries += 1 }
    return min(Self.shortestPauseMilliseconds << tries, Self.longestPauseMilliseconds)
  }

  private mutating func noteProgress(_ deliveredByteCount: Int64) {
    guard deliveredByteCount >= deliveredAtBreak + Self.progressByteCount else { return }
    deliveredAtBreak = deliveredByteCount
    used = 0
    tries = 0
  }
}
