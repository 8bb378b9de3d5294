import AudioEngineCore
import Testing

@Suite struct ExtractionTests {
  private static let now = 1_800_000_000.0

  @Test(arguments: [
    ("https://a.example/v?expire=1800003630&id=1", 3_600.0),
    ("https://a.example/v?id=1&Expires=1800000630", 600),
    ("https://a.example/v/expire/1800003630/id/1", 3_600),
    ("https://a.example/v?expire=1799999999", 0),
    ("https://a.example/v?expire=99999999999", 86_400),
    ("https://a.example/v?expire=soon", 3_600),
    ("https://a.example/v?expire=inf", 86_400),
    ("https://a.example/v?expire=nan", 3_600),
    ("https://a.example/v?expire=7200", 3_600),
    ("https://a.example/v?expire", 3_600),
    ("https://a.example/song.mp3", 3_600),
  ])
  func `an extraction lasts until its address says, less half a minute`(url: String, seconds: Double) {
    #expect(Extraction.lifetimeSeconds(of: url, unixSeconds: Self.now) == seconds)
  }

  @Test func `what has expired is forgotten, and the least recently used where there is too much`() {
    var cache = ExpiringCache<Int>(maximumCount: 2)
    cache.insert(1, for: "one", expiresNanoseconds: 100)
    cache.insert(2, for: "two", expiresNanoseconds: 200)
    #expect(cache.value(for: "one", now: 99) == 1)
    cache.insert(3, for: "three", expiresNanoseconds: 300)
    #expect(cache.value(for: "two", now: 99) == nil)
    #expect(cache.value(for: "one", now: 99) == 1)
    #expect(cache.value(for: "one", now: 100) == nil)
    #expect(cache.value(for: "three", now: 299) == 3)
    #expect(cache.count == 1)
  }

  @Test(arguments: ["10.0.0.0/8", "fd00::/8", "127.0.0.1/32", "::1/128"])
  func `a network is told to the worker as it was given`(text: String) {
    #expect(IPNetwork(text)?.description == text)
  }
}
