/// A bucket of tokens that fills by itself: so many at once, and then so many a second. What costs more than there is
/// leaves it in debt, so that anyone who asks for much waits longer.
package struct TokenBucket: Sendable {
  package struct Rate: Sendable, Equatable {
    package var burst: Double
    package var perSecond: Double

    package init(burst: Int, perSecond: Double) {
      self.burst = Double(burst)
      self.perSecond = perSecond
    }

    package static func * (rate: Rate, factor: Int) -> Rate {
      var rate = rate
      rate.burst *= Double(factor)
      rate.perSecond *= Double(factor)
      return rate
    }
  }

  package private(set) var rate: Rate
  private var level: Double
  private var filledNanoseconds: UInt64

  /// A full one.
  ///
  /// - Parameter now: `MonotonicClock.nowNanoseconds`.
  package init(_ rate: Rate, now: UInt64) {
    self.rate = rate
    level = rate.burst
    filledNanoseconds = now
  }

  /// Whether it has been left alone until it was full again.
  package func isFull(now: UInt64) -> Bool { missing(now: now) <= 0 }

  /// How many tokens it lacks to be full.
  package func missing(now: UInt64) -> Double { rate.burst - level(now) }

  /// Whether anything may be taken.
  package func hasTokens(now: UInt64) -> Bool { level(now) > 0 }

  /// - Parameter cost: negative for tokens that are given back.
  package mutating func take(_ cost: Int, now: UInt64) { take(Double(cost), now: now) }

  package mutating func take(_ cost: Double, now: UInt64) {
    fill(now)
    level = min(rate.burst, level - cost)
  }

  /// Takes tokens of the future, where they come soon enough.
  ///
  /// - Returns: the seconds until they have come; nothing was taken where that is more than `longest`.
  package mutating func reserve(_ cost: Int, longest: Double, now: UInt64) -> Double {
    fill(now)
    let seconds = max(0, Double(cost) - level) / rate.perSecond
    if seconds <= longest { level -= Double(cost) }
    return seconds
  }

  /// Another rate from now on. A larger bucket is given what it is larger by.
  package mutating func change(_ rate: Rate, now: UInt64) {
    fill(now)
    level += max(0, rate.burst - self.rate.burst)
    self.rate = rate
  }

  private mutating func fill(_ now: UInt64) {
    level = level(now)
    filledNanoseconds = max(now, filledNanoseconds)
  }

  private func level(_ now: UInt64) -> Double {
    guard now > filledNanoseconds else { return level }
    return min(rate.burst, level + Double(now - filledNanoseconds) / 1_000_000_000 * rate.perSecond)
  }
}
