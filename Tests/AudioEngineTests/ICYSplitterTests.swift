import AudioEngineCore
import Testing
import WireProtocol

@Suite struct `A station's metadata` {
  private static let interval = 100

  /// Sound of counted bytes with a block after each interval.
  private static func stream(_ blocks: [[UInt8]]) -> (bytes: [UInt8], sound: [UInt8]) {
    var (bytes, sound): ([UInt8], [UInt8]) = ([], [])
    for (number, block) in blocks.enumerated() {
      let piece = (0..<interval).map { UInt8(truncatingIfNeeded: $0 &+ number &* 7) }
      sound += piece
      bytes += piece + block
    }
    return (bytes, sound)
  }

  private static func block(_ text: String) -> [UInt8] {
    let count = (text.utf8.count + 15) / 16
    return [UInt8(count)] + Array(text.utf8) + [UInt8](repeating: 0, count: count * 16 - text.utf8.count)
  }

  /// What is heard and said where reads give so many bytes at most.
  private static func split(
    _ bytes: [UInt8], readByteCount: Int
  ) -> (sound: [UInt8], said: [(place: Int, metadata: StreamMetadata?)]) {
    var splitter = ICYSplitter(interval: interval)
    var (sound, said): ([UInt8], [(place: Int, metadata: StreamMetadata?)]) = ([], [])
    var rest = bytes[...]
    var buffer = [UInt8](repeating: 0, count: readByteCount)
    while true {
      let mistaken = buffer.withUnsafeMutableBytes { splitter.takeMistaken(into: $0) }
      sound += buffer[..<mistaken]
      if mistaken > 0 { continue }
      let piece = rest.prefix(min(readByteCount, splitter.maximumReadByteCount))
      guard !piece.isEmpty else { return (sound, said) }
      rest = rest.dropFirst(piece.count)
      let taken = Array(piece).withUnsafeBytes { splitter.take($0) }
      sound += piece.prefix(taken.audioByteCount)
      if let block = taken.block { said.append((sound.count, StreamMetadata(icyBlock: block))) }
    }
  }

  @Test(arguments: [1, 2, 7, 64, 100, 101, 4_096])
  func `is cut out of the sound wherever reads end`(readByteCount: Int) {
    let (bytes, sound) = Self.stream([
      Self.block("StreamTitle='Miles Davis - So What';StreamUrl='';"), [0], Self.block("StreamTitle='News';"),
      [0],
    ])
    let (heard, said) = Self.split(bytes, readByteCount: readByteCount)
    #expect(heard == sound)
    #expect(said.map(\.place) == [100, 300])
    #expect(
      said.map(\.metadata) == [
        StreamMetadata(title: "So What", artist: "Miles Davis"), StreamMetadata(title: "News", artist: nil),
      ])
  }

  @Test(arguments: [1, 50, 4_096])
  func `that a server promises and does not send leaves the sound whole`(readByteCount: Int) {
    // 0x07 stands where a length should: it and what follows are sound.
    let sound = (0..<2_000).map { UInt8(truncatingIfNeeded: $0 &* 31 &+ 7) | 1 }
    #expect(Self.split(sound, readByteCount: readByteCount).sound == sound)
  }

  @Test func `that is cut off in its middle is left out`() {
    let (bytes, sound) = Self.stream([Self.block("StreamTitle='Miles Davis - So What';")])
    let (heard, said) = Self.split(bytes.dropLast(20), readByteCount: 64)
    #expect(heard == sound && said.isEmpty)
  }

  @Test(arguments: [
    ("StreamTitle='A - B - C';", StreamMetadata(title: "B - C", artist: "A")),
    (
      "StreamTitle='It's - Bob's; 'Ring'';StreamUrl='x';",
      StreamMetadata(title: "Bob's; 'Ring'", artist: "It's")
    ),
    ("StreamTitle='A - 'B';- C';StreamUrl='';", StreamMetadata(title: "'B';- C", artist: "A")),
    (
      "StreamTitle='A &#8211; B &# &#x; &#1234567890;';",
      StreamMetadata(title: "A – B &# &#x; &#1234567890;", artist: nil)
    ),
    ("StreamTitle='';", StreamMetadata(title: nil, artist: nil)),
    ("StreamTitle=' - ';", StreamMetadata(title: "-", artist: nil)),
    ("StreamTitle='no end", nil),
    ("StreamUrl='x';", nil),
    ("StreamTitle='two\nlines\u{7}';", StreamMetadata(title: "two lines", artist: nil)),
  ])
  func `says title and artist`(text: String, expected: StreamMetadata?) {
    #expect(StreamMetadata(icyBlock: Array(text.utf8)) == expected)
  }

  @Test func `that is no UTF-8 is read as Latin-1`() {
    let block = Array("StreamTitle='Bj".utf8) + [0xF6] + Array("rk - J".utf8) + [0xF3] + Array("ga';".utf8)
    #expect(StreamMetadata(icyBlock: block) == StreamMetadata(title: "Jóga", artist: "Björk"))
  }
}
