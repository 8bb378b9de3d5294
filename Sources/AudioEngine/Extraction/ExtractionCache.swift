/// Extractions by page address until they expire; the least recently used is forgotten first.
struct ExtractionCache {
  private struct Entry {
    let extraction: Extraction
    var lastUse: UInt64
  }

  private let maximumCount: Int
  private var entries: [String: Entry] = [:]
  private var uses: UInt64 = 0

  init(maximumCount: Int) { self.maximumCount = maximumCount }

  var count: Int { entries.count }

  /// - Parameter now: `CLOCK_MONOTONIC`, nanoseconds.
  mutating func value(for url: String, now: UInt64) -> Extraction? {
    guard let extraction = entries[url]?.extraction else { return nil }
    guard extraction.expiresNanoseconds > now else {
      entries[url] = nil
      return nil
    }
    uses += 1
    entries[url]!.lastUse = uses
    return extraction
  }

  mutating func insert(_ extraction: Extraction, for url: String) {
    uses += 1
    entries[url] = Entry(extraction: extraction, lastUse: uses)
    while entries.count > maximumCount, let oldest = entries.min(by: { $0.value.lastUse < $1.value.lastUse }) {
      entries[oldest.key] = nil
    }
  }
}
