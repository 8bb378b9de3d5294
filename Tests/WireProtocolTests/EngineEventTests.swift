import Foundation
import Testing
import WireProtocol

@Suite struct EngineEventTests {
  @Test func `every event survives being written and read`() throws {
    let anchor = EngineEvent.Anchor(positionMilliseconds: 20, dueNanoseconds: UInt64.max - 1)
    var session = SessionSnapshot(sessionID: try SessionID("1"), state: .streaming)
    session.title = "Ein \"Lied\"\n"
    session.dueNanoseconds = 7
    session.live = true
    session.chapters = [Chapter(startMilliseconds: 0, title: "Prelude")]
    var ready = Ready(
      url: "media:a", title: nil, durationMilliseconds: 3_000, codec: "mp3", passthrough: false,
      timings: .init())
    ready.artist = "Hildegard"
    ready.album = "Ordo"
    ready.artwork = "/artwork?url=media:a"
    ready.chapters = session.chapters
    let hello = Hello(
      startedAtMilliseconds: 1, nowNanoseconds: 2,
      limits: .init(maximumWorkers: 60, maximumSessions: 9, readAheadMilliseconds: 15_000),
      sessions: [session])
    let listing = MediaListing(
      path: "", entries: [.init(name: "a", kind: .file, url: "media:a", bytes: 3)], truncated: false)
    let resolution = Resolution(
      query: "q", kind: .search,
      entries: [
        .init(url: "https://a", title: "A", durationMilliseconds: 9, thumbnail: "https://b", live: true)
      ],
      truncated: true)
    let piece = ArtworkPiece(
      url: "media:a", contentType: "image/png", byteCount: 9, entityTag: "\"1\"", offset: 6,
      data: Data([0, 255, 7]))
    let bodies: [EngineEvent.Body] = [
      .artwork(piece), .burst(anchor, count: 25), .listed,
      .hello(hello), .extracting(url: "u"), .extracting(url: "u", tag: "17.r1-2"), .ready(ready),
      .playing(anchor), .paused(positionMilliseconds: 1),
      .resumed(anchor), .seeked(positionMilliseconds: 1, dueNanoseconds: nil),
      .seeked(positionMilliseconds: 1, dueNanoseconds: 2), .rebased(anchor),
      .buffering(positionMilliseconds: 3),
      .stuck(positionMilliseconds: 3, waitedMilliseconds: 10_000), .dropped(count: 4),
      .ended(.loadFailed, positionMilliseconds: 5), .status(session), .media(listing),
      .resolved(resolution),
      .error(ErrorReport(.sourceNotFound, "gone", hint: "look", stage: .resolve)),
    ]
    for body in bodies {
      let event = EngineEvent(body, sessionID: session.sessionID, requestID: "r")
      let line = event.encodedLine()
      #expect(line.first == UInt8(ascii: "{") && line.firstIndex(of: 0x0A) == line.count - 1, "\(body.name)")
      #expect(try EngineEvent.decode(line.dropLast()) == event)
    }
  }

  @Test func `hello with the longest of everything fits an event`() throws {
    // What JSON has to escape, and characters of four bytes.
    let tag = String(repeating: "𝄞", count: WireLimits.maximumTagScalarCount)
    var session = SessionSnapshot(
      sessionID: try SessionID(String(repeating: "a", count: 24)), state: .streaming)
    session.url = String(repeating: "\"", count: 8_192)
    (session.title, session.artist, session.album) = (tag, tag, tag)
    session.artwork = String(repeating: "\"", count: WireLimits.maximumArtworkURLByteCount)
    session.dueNanoseconds = .max
    session.volume = 1.0 / 3
    let hello = Hello(
      startedAtMilliseconds: .max, nowNanoseconds: .max,
      limits: .init(maximumWorkers: .max, maximumSessions: .max, readAheadMilliseconds: .max),
      sessions: Array(repeating: session, count: WireLimits.maximumHelloSessions))
    #expect(EngineEvent(.hello(hello)).encoded().count <= WireLimits.maximumEventByteCount)
  }

  @Test func `every error code has a status that is an error`() {
    for code in ErrorCode.allCases { #expect((400..<600).contains(code.httpStatus), "\(code)") }
  }
}

@Suite struct LineDecoderTests {
  @Test func `lines come out whole however they arrive`() {
    let bytes = Array("{\"a\":1}\n\n{\"b\":2}\nrest".utf8)
    for size in 1...bytes.count {
      var decoder = LineDecoder()
      var lines: [LineDecoder.Line] = []
      for start in stride(from: 0, to: bytes.count, by: size) {
        decoder.append(bytes[start..<min(start + size, bytes.count)]) { lines.append($0) }
      }
      #expect(lines == [.whole(Array("{\"a\":1}".utf8)), .whole([]), .whole(Array("{\"b\":2}".utf8))])
    }
  }

  @Test func `a line over the limit is told once, and the next one is read`() {
    var decoder = LineDecoder()
    var lines: [LineDecoder.Line] = []
    decoder.append([UInt8](repeating: 0x61, count: 200_000) + Array("\nok\n".utf8)) { lines.append($0) }
    #expect(lines == [.tooLong, .whole(Array("ok".utf8))])
  }

  @Test func `a line of exactly the limit is whole`() {
    var decoder = LineDecoder()
    var lines: [LineDecoder.Line] = []
    let longest = [UInt8](repeating: 0x61, count: WireLimits.maximumCommandByteCount)
    decoder.append(longest + [0x0A]) { lines.append($0) }
    #expect(lines == [.whole(longest)])
  }
}
