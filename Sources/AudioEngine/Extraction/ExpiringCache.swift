/// What has been found, by the question, until it expires; the least recently used is forgotten first.
package struct ExpiringCache<Value> {
  private struct Entry {
    let value: Value
    /// `CLOCK_MONOTONIC`.
    let expiresNanoseconds: UInt64
    var lastUse: UInt64
  }

  private let maximumCount: Int
  private var entries: [String: Entry] = [:]
  private var uses: UInt64 = 0

  package init(maximumCount: Int) { self.maximumCount = maximumCount }

  package var count: Int { entries.count }

  /// - Parameter now: `CLOCK_MONOTONIC`, nanoseconds.
  package mutating func value(for question: String, now: UInt64) -> Value? {
    guard let entry = entries[question] else { return nil }
    guard entry.expiresNanoseconds > now else {
      entries[question] = nil
      return nil
    }
    uses += 1
    entries[question]!.lastUse = uses
    return entry.value
  }

  package mutating func insert(_ value: Value, for question: String, expiresNanoseconds: UInt64) {
    uses += 1
    entries[question] = Entry(value: value, expiresNanoseconds: expiresNanoseconds, lastUse: uses)
    while entries.count > maximumCount, let oldest = entries.min(by: { $0.value.lastUse < $1.value.lastUse })
    {
      entries[oldest.key] = nil
    }
  }
}
