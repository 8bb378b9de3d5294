import AudioEngineCore
import Testing
import WireProtocol

@Suite struct `An HLS playlist` {
  private static let url = "https://cdn.example/a/index.m3u8?token=1"

  private static func media(_ lines: String...) throws -> SegmentPlaylist {
    let text = "#EXTM3U\n#EXT-X-TARGETDURATION:6\n" + lines.joined(separator: "\n") + "\n"
    guard case .segments(let playlist) = try HLSPlaylist.listing(text, url: url) else {
      throw ErrorReport(.internal, "no list")
    }
    return playlist
  }

  @Test func `numbers its segments and knows where they are`() throws {
    let list = try Self.media(
      "#EXT-X-MEDIA-SEQUENCE:41", "#EXTINF:5.005,One - Two", "s41.ts", "#EXT-X-GAP", "#EXTINF:4", "../s42.ts",
      "#EXT-X-DISCONTINUITY", "#EXTINF:3,", "http://other.example/s43.ts")
    #expect(list.segments.map(\.number) == [41, 42, 43])
    #expect(
      list.segments.map(\.part.url) == [
        "https://cdn.example/a/s41.ts", "https://cdn.example/s42.ts", "http://other.example/s43.ts",
      ])
    #expect(list.segments.map(\.seconds) == [5.005, 4, 3])
    #expect(list.segments.map(\.title) == ["One - Two", nil, nil])
    #expect(list.segments.map(\.isGap) == [false, true, false])
    #expect(list.segments.map(\.isDiscontinuous) == [false, false, true])
    #expect(!list.isEnded && list.joinSeconds == 18 && list.reloadSeconds == 3)
  }

  @Test func `may end its lines as Windows does`() throws {
    let text = "#EXTM3U\r\n#EXT-X-TARGETDURATION:6\r\n#EXTINF:5,\r\na.ts\r\n#EXT-X-ENDLIST\r\n"
    guard case .segments(let list) = try HLSPlaylist.listing(text, url: Self.url) else {
      throw ErrorReport(.internal, "no list")
    }
    #expect(list.segments.map(\.part.url) == ["https://cdn.example/a/a.ts"] && list.isEnded)
  }

  @Test func `has byte ranges that follow each other, and maps`() throws {
    let list = try Self.media(
      #"#EXT-X-MAP:URI="all.mp4",BYTERANGE="700@0""#, "#EXTINF:1,", "#EXT-X-BYTERANGE:100@700", "all.mp4",
      "#EXTINF:1,",
      "#EXT-X-BYTERANGE:50", "all.mp4", "#EXT-X-ENDLIST")
    #expect(list.segments.map(\.part.range) == [700..<800, 800..<850])
    #expect(
      list.segments[1].map?.url == "https://cdn.example/a/all.mp4" && list.segments[1].map?.range == 0..<700)
    #expect(list.isEnded)
  }

  @Test func `has keys that hold until the next one`() throws {
    let list = try Self.media(
      #"#EXT-X-KEY:METHOD=AES-128,URI="k,1",IV=0x000102030405060708090A0B0C0D0E0F"#, "#EXTINF:1,", "a.ts",
      "#EXTINF:1,",
      "b.ts", "#EXT-X-KEY:METHOD=NONE", "#EXTINF:1,", "c.ts")
    #expect(list.segments.map(\.key?.url) == ["https://cdn.example/a/k,1", "https://cdn.example/a/k,1", nil])
    #expect(list.segments[1].key?.initializationVector == Array(0..<16))
  }

  @Test(arguments: [
    ("#EXTINF:-1,", ErrorCode.sourceCorrupt), ("#EXTINF:nan,", .sourceCorrupt),
    ("#EXTINF:1e9,", .sourceCorrupt),
    ("#EXT-X-MEDIA-SEQUENCE:-4", .sourceCorrupt), ("#EXT-X-BYTERANGE:0@1", .sourceCorrupt),
    ("#EXT-X-BYTERANGE:9223372036854775807@9223372036854775807", .sourceCorrupt),
    ("#EXT-X-KEY:METHOD=AES-128", .sourceCorrupt),
    (#"#EXT-X-KEY:METHOD=AES-128,URI="k",IV=0x12"#, .sourceCorrupt),
    (#"#EXT-X-KEY:METHOD=SAMPLE-AES,URI="k""#, .sourceNotAudio),
    (#"#EXT-X-MAP:URI="file:///x""#, .sourceForbidden),
    (#"#EXT-X-KEY:METHOD=AES-128,URI="data:,x""#, .sourceForbidden), ("media:a.flac", .sourceForbidden),
  ])
  func `says what is wrong`(line: String, code: ErrorCode) {
    let error = #expect(throws: ErrorReport.self) { try Self.media("#EXTINF:1,", line, "a.ts") }
    #expect(error?.code == code)
  }

  @Test func `that is none is told from one`() {
    for text in [
      "", "hello", "#EXTM3U\n#EXTINF:1,\na.mp3\n", "[playlist]\nFile1=x\n", "\u{FEFF}#EXTM3U\n#EXT-X-ENDLIST",
    ] {
      let error = #expect(throws: ErrorReport.self) { try HLSPlaylist.listing(text, url: Self.url) }
      #expect(error?.code == .sourceNotAudio)
    }
  }

  /// A count that would run over is refused before it does.
  @Test func `is not numbered beyond what can be counted`() {
    let error = #expect(throws: ErrorReport.self) {
      try Self.media("#EXT-X-MEDIA-SEQUENCE:\(Int.max)", "#EXTINF:1,", "a.ts")
    }
    #expect(error?.code == .sourceCorrupt)
  }

  // MARK: A choice

  private static func best(_ lines: String...) throws -> String {
    let text = "#EXTM3U\n" + lines.joined(separator: "\n")
    guard case .choice(let best) = try HLSPlaylist.listing(text, url: url) else {
      throw ErrorReport(.internal, "no choice")
    }
    return best.replacing("https://cdn.example/a/", with: "")
  }

  @Test func `gives the best sound alone that is not too much`() throws {
    #expect(
      try Self.best(
        #"#EXT-X-STREAM-INF:BANDWIDTH=64000,CODECS="mp4a.40.5""#, "low",
        #"#EXT-X-STREAM-INF:BANDWIDTH=256000,CODECS="mp4a.40.2""#,
        "good", "#EXT-X-STREAM-INF:BANDWIDTH=1400000,CODECS=\"flac\"", "lossless",
        #"#EXT-X-STREAM-INF:BANDWIDTH=400000,CODECS="avc1.4d,mp4a.40.2""#, "video") == "good")
  }

  @Test func `gives the sound that goes with the best picture, and its default`() throws {
    #expect(
      try Self.best(
        #"#EXT-X-MEDIA:TYPE=AUDIO,GROUP-ID="lo",NAME="a",URI="lo""#,
        #"#EXT-X-MEDIA:TYPE=AUDIO,GROUP-ID="hi",NAME="a",URI="hi""#,
        #"#EXT-X-MEDIA:TYPE=AUDIO,GROUP-ID="hi",NAME="b",DEFAULT=YES,URI="hi-default""#,
        #"#EXT-X-STREAM-INF:BANDWIDTH=500000,RESOLUTION=640x360,AUDIO="lo""#, "v1",
        #"#EXT-X-STREAM-INF:BANDWIDTH=5000000,RESOLUTION=1920x1080,AUDIO="hi""#, "v2") == "hi-default")
  }

  @Test func `gives the smallest picture where the sound comes with one`() throws {
    #expect(
      try Self.best(
        #"#EXT-X-STREAM-INF:BANDWIDTH=5000000,RESOLUTION=1920x1080"#, "big",
        #"#EXT-X-STREAM-INF:BANDWIDTH=300000,RESOLUTION=320x180"#,
        "small") == "small")
  }
}
