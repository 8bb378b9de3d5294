import AudioEngineCore
import Testing

@Suite struct WebRequestTests {
  private func request(_ headers: (String, String)...) -> WebRequest {
    WebRequest(
      url: "https://a.example/x", headers: headers.map { WebRequest.Header(name: $0.0, value: $0.1) })
  }

  @Test func `headers that are the engine's own to set, or are none, are left out`() {
    let request = request(
      ("Range", "bytes=5-"), ("HOST", "b.example"), ("Accept-Encoding", "gzip"), ("Connection", "close"),
      ("If-Range", "x"), ("Transfer-Encoding", "chunked"), ("", "x"), ("A B", "x"), ("X", "a\r\nHost: b"),
      ("X", "a\0"), ("Y:", "z"), ("Referer", "https://c.example"), ("User-Agent", "ü"), ("Cookie", "k=v"))
    #expect(request.headers.map(\.name) == ["Referer", "User-Agent", "Cookie"])
  }

  @Test func `headers are not without number or length`() {
    let many = (0..<1_000).map { WebRequest.Header(name: "X-\($0)", value: "y") }
    #expect(WebRequest(url: "http://a", headers: many).headers.count == 32)
    let long = WebRequest.Header(name: "X", value: String(repeating: "y", count: 10_000))
    #expect(WebRequest(url: "http://a", headers: [long]).headers.isEmpty)
  }

  @Test(arguments: [
    ("https://a.example/y", true), ("https://A.EXAMPLE:443/y", true), ("http://a.example/x", false),
    ("https://b.example/x", false), ("https://a.example:8443/x", false), ("https://a.example.b/x", false),
    ("https://a.example@b.example/x", false),
  ])
  func `credentials stay with the origin they were given for`(target: String, stays: Bool) {
    let redirected = request(("Cookie", "k=v"), ("AUTHORIZATION", "z"), ("Referer", "r"))
      .redirected(to: target)
    #expect(redirected.url == target)
    #expect(redirected.headers.map(\.name) == (stays ? ["Cookie", "AUTHORIZATION", "Referer"] : ["Referer"]))
  }
}

@Suite struct WebEntityTests {
  @Test func `a content range is read, and nothing that contradicts itself`() {
    #expect(ContentRange("bytes 5-9/10")?.first == 5)
    #expect(ContentRange("bytes 5-9/10")?.total == 10)
    #expect(ContentRange("BYTES 0-0/*")?.first == 0)
    #expect(ContentRange("bytes 0-0/*")?.total == nil)
    #expect(ContentRange("bytes */10")?.first == nil)
    #expect(ContentRange("bytes */10")?.total == 10)
    for text in [
      "", "bytes", "bytes 5-9", "bytes 9-5/10", "bytes 5-10/10", "bytes -5/10", "bytes 5-/10", "items 5-9/10",
      "bytes 5-9/x", "bytes +5-9/10", "bytes 5-9/10 x", "bytes 0-99999999999999999999/*", "bytes 5-9/10/11",
    ] {
      #expect(ContentRange(text) == nil, "\(text)")
    }
  }

  @Test func `a later answer contradicts an earlier one where both say something and differ`() {
    let first = WebEntity(byteCount: 10, etag: "\"a\"", lastModified: "Mon")
    #expect(!first.isContradicted(by: first))
    #expect(!first.isContradicted(by: WebEntity(byteCount: nil)))
    #expect(first.isContradicted(by: WebEntity(byteCount: 11)))
    #expect(first.isContradicted(by: WebEntity(byteCount: 10, etag: "\"b\"")))
    #expect(first.isContradicted(by: WebEntity(byteCount: 10, lastModified: "Tue")))
    // A weak tag promises nothing about bytes.
    #expect(!first.isContradicted(by: WebEntity(byteCount: 10, etag: "W/\"b\"")))
  }

  @Test func `a whole body is taken for the same only where something says so`() {
    let nameless = WebEntity(byteCount: nil)
    #expect(!nameless.isConfirmed(by: nameless))
    #expect(!nameless.isConfirmed(by: WebEntity(byteCount: 10)))
    #expect(WebEntity(byteCount: 10).isConfirmed(by: WebEntity(byteCount: 10)))
    #expect(WebEntity(byteCount: nil, etag: "x").isConfirmed(by: WebEntity(byteCount: 10, etag: "x")))
    #expect(!WebEntity(byteCount: 10, etag: "x").isConfirmed(by: WebEntity(byteCount: 10, etag: "y")))
  }
}

@Suite struct TransferLimitTests {
  @Test func `pauses grow, have an end, and begin anew with progress`() {
    var budget = ReconnectBudget()
    func pauses(at delivered: Int64) -> [Int] {
      var pauses: [Int] = []
      while let pause = budget.nextPause(deliveredByteCount: delivered, isTimeout: false) {
        pauses.append(pause)
      }
      return pauses
    }
    #expect(pauses(at: 0) == [100, 200, 400, 800, 1_600, 2_000, 2_000, 2_000])
    #expect(pauses(at: ReconnectBudget.progressByteCount - 1).isEmpty)
    #expect(pauses(at: ReconnectBudget.progressByteCount).count == ReconnectBudget.maximumCost)
  }

  @Test func `a server that hangs is not asked as often as one that hangs up`() {
    var budget = ReconnectBudget()
    var tries = 0
    while budget.nextPause(deliveredByteCount: 0, isTimeout: true) != nil { tries += 1 }
    #expect(tries == 2)
  }

  @Test func `a source is read at its rate, after a second's worth at once`() {
    var rate = TransferRate(bytesPerSecond: 1_000, stallSeconds: 10)
    let second: UInt64 = 1_000_000_000
    var now = 100 * second
    rate.count(1_000, waitedNanoseconds: 0, now: now)
    #expect(rate.delayNanoseconds(now: now) == 0)
    var read = 0
    let end = now + 10 * second
    while now < end {
      now += rate.delayNanoseconds(now: now)
      rate.count(100, waitedNanoseconds: 0, now: now)
      read += 100
    }
    #expect((9_900...10_200).contains(read), "\(read) bytes in 10 s")
    // What was not read for long is not made up for.
    now += 3_600 * second
    rate.count(1_500, waitedNanoseconds: 0, now: now)
    #expect(rate.delayNanoseconds(now: now) == second / 2)
  }

  @Test func `a trickle is a stall, and a reader that takes its time is none`() {
    var rate = TransferRate(bytesPerSecond: 1_000_000, stallSeconds: 10)
    for _ in 0..<100 { rate.count(1, waitedNanoseconds: 99_000_000, now: 1) }
    #expect(!rate.isStalled)
    for _ in 0..<2 { rate.count(1, waitedNanoseconds: 99_000_000, now: 1) }
    #expect(rate.isStalled)
    rate.restart()
    #expect(!rate.isStalled)
    for _ in 0..<100 { rate.count(TransferRate.stallByteCount, waitedNanoseconds: 9_000_000_000, now: 1) }
    #expect(!rate.isStalled)
  }
}
