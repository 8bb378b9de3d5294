/// Token buckets, one a key: whoever has used up theirs costs the others nothing.
package struct KeyedBuckets<Key: Hashable & Sendable>: Sendable {
  private struct Bucket {
    var missing: Double
    var filledNanoseconds: UInt64
  }

  private let burst: Double
  private let perSecond: Double
  private let maximumCount: Int
  private var buckets: [Key: Bucket] = [:]

  /// - Parameters:
  ///   - burst: what may be taken at once.
  ///   - maximumCount: how many buckets are remembered. The fullest is forgotten first, which is as good as none.
  package init(burst: Int, perSecond: Double, maximumCount: Int) {
    self.burst = Double(burst)
    self.perSecond = perSecond
    self.maximumCount = maximumCount
  }

  /// Takes one token.
  ///
  /// - Parameters:
  ///   - factor: how many times the usual burst and rate this key has.
  ///   - now: `MonotonicClock.nowNanoseconds`.
  /// - Returns: 0, or the seconds until there is one.
  package mutating func take(_ key: Key, factor: Int = 1, now: UInt64) -> Double {
    let factor = Double(max(1, factor))
    if buckets[key] == nil, buckets.count >= maximumCount { forgetFullest(now) }
    let missing = missing(key, factor, now)
    let lacking = missing + 1 - burst * factor
    buckets[key] = Bucket(missing: lacking > 0 ? missing : missing + 1, filledNanoseconds: now)
    return lacking > 0 ? lacking / (perSecond * factor) : 0
  }

  /// Returns a token that was not needed.
  package mutating func giveBack(_ key: Key) {
    guard let bucket = buckets[key] else { return }
    buckets[key]?.missing = max(0, bucket.missing - 1)
  }

  private func missing(_ key: Key, _ factor: Double, _ now: UInt64) -> Double {
    guard let bucket = buckets[key] else { return 0 }
    let seconds = Double(now &- bucket.filledNanoseconds) / 1_000_000_000
    return max(0, bucket.missing - seconds * perSecond * factor)
  }

  private mutating func forgetFullest(_ now: UInt64) {
    let fullest = buckets.keys.min { missing($0, 1, now) < missing($1, 1, now) }
    if let fullest { buckets[fullest] = nil }
  }
}
