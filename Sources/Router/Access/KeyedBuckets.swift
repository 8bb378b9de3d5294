/// Token buckets, one a key: anyone who has used up theirs costs the others nothing.
package struct KeyedBuckets<Key: Hashable & Sendable>: Sendable {
  private let rate: TokenBucket.Rate
  private let maximumCount: Int
  private var buckets: [Key: TokenBucket] = [:]

  /// - Parameter maximumCount: how many buckets are remembered. The fullest is forgotten first, which is as good as
  ///   none.
  package init(_ rate: TokenBucket.Rate, maximumCount: Int) {
    self.rate = rate
    self.maximumCount = maximumCount
  }

  /// Takes one token.
  ///
  /// - Parameters:
  ///   - factor: how many times the usual burst and rate this key has.
  ///   - now: `MonotonicClock.nowNanoseconds`.
  /// - Returns: 0, or the seconds until there is one.
  package mutating func take(_ key: Key, factor: Int = 1, now: UInt64) -> Double {
    if buckets[key] == nil, buckets.count >= maximumCount { forgetFullest(now) }
    let rate = self.rate * factor
    var bucket = buckets[key] ?? TokenBucket(rate, now: now)
    if bucket.rate != rate { bucket.change(rate, now: now) }
    defer { buckets[key] = bucket }
    return bucket.reserve(1, longest: 0, now: now)
  }

  /// Returns a token that was not needed.
  package mutating func giveBack(_ key: Key, now: UInt64) { buckets[key]?.take(-1, now: now) }

  private mutating func forgetFullest(_ now: UInt64) {
    let fullest = buckets.min { $0.value.missing(now: now) < $1.value.missing(now: now) }
    if let fullest { buckets[fullest.key] = nil }
  }
}
