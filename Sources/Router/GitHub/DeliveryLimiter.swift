import Synchronization
import WireProtocol

/// Token buckets, one a repository: one whose automation has run wild costs the others nothing.
package final class DeliveryLimiter: Sendable {
  private struct Bucket {
    var tokens: Double
    var filledNanoseconds: UInt64
  }

  private let burst: Double
  private let perSecond: Double
  private let buckets = Mutex<[SessionID: Bucket]>([:])

  package init(
    burst: Int = RouterLimits.deliveryBurst, perSecond: Double = RouterLimits.deliveriesPerSecond
  ) {
    self.burst = Double(burst)
    self.perSecond = perSecond
  }

  /// Lets one delivery through.
  ///
  /// - Parameter now: `MonotonicClock.nowNanoseconds`.
  /// - Throws: `rate_limited`, with the seconds until the next may come.
  package func take(
    _ repository: SessionID, now: UInt64 = MonotonicClock.nowNanoseconds
  ) throws(Refusal) {
    let wait = buckets.withLock { buckets -> Double in
      if buckets[repository] == nil, buckets.count >= RouterLimits.maximumRepositories {
        // A full bucket is as good as none.
        let fullest = buckets.max { tokens(in: $0.value, now) < tokens(in: $1.value, now) }
        buckets[fullest?.key ?? repository] = nil
      }
      var bucket = buckets[repository] ?? Bucket(tokens: burst, filledNanoseconds: now)
      bucket.tokens = tokens(in: bucket, now)
      bucket.filledNanoseconds = now
      defer { buckets[repository] = bucket }
      guard bucket.tokens >= 1 else { return (1 - bucket.tokens) / perSecond }
      bucket.tokens -= 1
      return 0
    }
    guard wait > 0 else { return }
    var refusal = Refusal(
      .rateLimited,
      "the repository \(repository) has sent over \(Int(burst)) deliveries at once, and over \(perSecond) a second",
      hint: "send this one again later: it is not counted as delivered")
    refusal.retryAfterSeconds = Int(wait.rounded(.up))
    throw refusal
  }

  private func tokens(in bucket: Bucket, _ now: UInt64) -> Double {
    let seconds = Double(now &- bucket.filledNanoseconds) / 1_000_000_000
    return min(burst, bucket.tokens + seconds * perSecond)
  }
}
