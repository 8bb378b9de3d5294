import Foundation
import FoundationNetworking
import RouterCore
import Testing

/// What players and browsers get over HTTP.
@Suite(.timeLimit(.minutes(1))) struct `Over HTTP` {
  @Test func `a player hears the session as Ogg Opus, and silence after it`() async throws {
    try await RunningRouter.run { router in
      let hello = FakeEngine.hello(capabilities: ["burst"])
      let engine = try await FakeEngine(path: router.enginePath, hello: hello)
      try await router.waitForEngine(connected: true)
      try await engine.startPlaying("one")
      for number in 0..<30 as Range<UInt8> { try await engine.sendPacket([number], to: "one") }
      // The stream has no end of its own: the Router is stopped while the player listens.
      let url = try #require(URL(string: "http://127.0.0.1:\(router.port)/listen/one.ogg?buffer_ms=200"))
      let start = ContinuousClock.now
      async let listening = Self.read(url, packets: 50)
      var commands = engine.commands.makeAsyncIterator()
      let command = try #require(await commands.next())
      let played = (20..<30 as Range<UInt8>).map { [$0] }
      try await engine.sendBurst(
        played, of: "one", position: 400, due: 400_001_000, requestID: command.requestID)
      let (bytes, response) = try await listening
      #expect((response as? HTTPURLResponse)?.value(forHTTPHeaderField: "Content-Type") == "audio/ogg")
      let pages = try OggPage.all(in: bytes)
      let audio = Self.audio(of: pages)
      #expect(audio.count >= 50)
      #expect(Array(audio.prefix(10)) == played)
      let silent = audio.dropFirst(10)
      #expect(silent.allSatisfy { $0 == [0xF8, 0xFF, 0xFE] })
      // No faster than it is played.
      let elapsed = ContinuousClock.now - start
      #expect(Duration.milliseconds(20) * silent.count <= elapsed)
      #expect(pages.map(\.sequence) == Array(0..<UInt32(pages.count)))
      #expect(pages.last.map { $0.granule } == Int64(audio.count) * 960)
      try await engine.die()
    }
  }

  @Test func `the page, its type and its version are served`() async throws {
    try await RunningRouter.run { router in
      let url = try #require(URL(string: "http://127.0.0.1:\(router.port)/"))
      let (page, response) = try await URLSession.shared.data(from: url)
      let answer = try #require(response as? HTTPURLResponse)
      #expect(answer.statusCode == 200)
      // What loads it again is part of it.
      let text = String(decoding: page, as: UTF8.self)
      #expect(text.contains("location.reload()") && !text.contains("load-again.js\""))
      #expect(answer.value(forHTTPHeaderField: "Content-Type") == "text/html; charset=utf-8")
      let policy = try #require(answer.value(forHTTPHeaderField: "Content-Security-Policy"))
      #expect(policy.hasPrefix("default-src 'self'"))
      let tag = try #require(answer.value(forHTTPHeaderField: "ETag"))
      #expect(try await router.request("GET", "/", headers: ["If-None-Match": tag]).status == 304)
    }
  }

  @Test func `a path that is not there is answered with the error object`() async throws {
    try await RunningRouter.run { router in
      for path in ["/nothing", "/listen/one.mp3", "/../etc/passwd", "/api/v1/sessions/one/dance"] {
        let answer = try await router.request("GET", path)
        #expect(answer.status == 404)
        #expect(answer.body.contains(#""code":"not_found""#))
      }
    }
  }

  /// What comes from an endless address until there are so many packets of audio.
  private static func read(_ url: URL, packets: Int) async throws -> ([UInt8], URLResponse?) {
    let collector = Collector()
    let session = URLSession(configuration: .ephemeral, delegate: collector, delegateQueue: nil)
    let task = session.dataTask(with: url)
    task.resume()
    defer { session.invalidateAndCancel() }
    var bytes: [UInt8] = []
    for await chunk in collector.chunks {
      bytes += chunk
      // A page that has come in part is malformed.
      if let pages = try? OggPage.all(in: bytes), audio(of: pages).count >= packets { break }
    }
    return (bytes, task.response)
  }

  private static func audio(of pages: [OggPage]) -> [[UInt8]] { pages.dropFirst(2).flatMap(\.packets) }
}

/// Passes on what a URLSession task receives.
private final class Collector: NSObject, URLSessionDataDelegate, Sendable {
  let chunks: AsyncStream<Data>
  private let continuation: AsyncStream<Data>.Continuation

  override init() {
    (chunks, continuation) = AsyncStream.makeStream()
    super.init()
  }

  func urlSession(_ session: URLSession, dataTask: URLSessionDataTask, didReceive data: Data) {
    continuation.yield(data)
  }

  func urlSession(_ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?) {
    continuation.finish()
  }
}
