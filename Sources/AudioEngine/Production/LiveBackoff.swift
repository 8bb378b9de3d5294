/// How long a live source is left alone before it is asked again: longer and longer up to 30 s, and at random, so that a
/// server that comes back does not meet all of its listeners at once.
package struct LiveBackoff {
  private static let shortestMilliseconds = 250
  private static let longestMilliseconds = 30_000
  /// A connection that brought so many packets was a good one.
  private static let progressPackets = 500

  private var tries = 0
  private var packetsAtBreak = 0

  package init() {}

  /// The pause before the next try, in milliseconds.
  ///
  /// - Parameters:
  ///   - packetCount: what the source has given altogether.
  ///   - random: from 0 to 1.
  package mutating func nextPause(packetCount: Int, random: Double = .random(in: 0...1)) -> Int {
    if packetCount >= packetsAtBreak + Self.progressPackets { tries = 0 }
    packetsAtBreak = packetCount
    let longest = min(Self.shortestMilliseconds << min(tries, 7), Self.longestMilliseconds)
    tries += 1
    return Int(Double(longest) * (0.5 + random / 2))
  }
}
