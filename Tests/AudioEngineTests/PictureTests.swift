import AudioEngineCore
import Testing
import WireProtocol

@Suite struct PictureTests {
  @Test(arguments: [
    ([0xFF, 0xD8, 0xFF, 0xE0], Picture.Kind.jpeg),
    ([0x89, 0x50, 0x4E, 0x47, 0x0D, 0x0A, 0x1A, 0x0A], .png),
    (Array("GIF89a".utf8), .gif),
    (Array("GIF87a".utf8), .gif),
    (Array("RIFF\0\0\0\0WEBPVP8 ".utf8), .webp),
  ])
  func `is known by its first bytes`(_ bytes: [UInt8], _ kind: Picture.Kind) throws {
    #expect(bytes.withUnsafeBytes { Picture.Kind(signature: $0) } == kind)
    for count in 0..<(kind == .webp ? 12 : bytes.count - (kind == .jpeg ? 1 : 0)) {
      #expect(bytes[..<count].withUnsafeBytes { Picture.Kind(signature: $0) } == nil, "\(count) bytes")
    }
  }

  @Test(arguments: ["", "<svg xmlns=", "<!doctype html>", "RIFF\0\0\0\0WAVE", "GIF88a", " GIF89a"])
  func `nothing else is one`(_ text: String) {
    let picture = Array(text.utf8).withUnsafeBytes { try? Picture($0, of: "a") }
    #expect(picture == nil)
  }
}

@Suite struct TagTextTests {
  private func decoded(_ bytes: [UInt8], isCut: Bool = false) -> String {
    bytes.withUnsafeBytes { TagText.decoded($0, isCut: isCut) }
  }

  @Test func `UTF-8 stays, and anything else is taken for Latin-1`() {
    #expect(decoded(Array("Björk 音".utf8)) == "Björk 音")
    #expect(decoded([0x42, 0x6A, 0xF6, 0x72, 0x6B]) == "Björk")
    #expect(decoded([0x63, 0x61, 0x66, 0xE9]) == "café")
  }

  @Test func `a character that a limit has cut is left out`() {
    let bytes = Array("a音音".utf8)
    for count in 1...bytes.count {
      let text = decoded(Array(bytes[..<count]), isCut: true)
      #expect("a音音".hasPrefix(text) && !text.contains("\u{FFFD}"), "\(count) bytes: \(text)")
    }
  }

  @Test(arguments: [
    ("  a\tb\n", "a b"), ("", nil), (" \r\n\u{0}\u{7F}\u{85}", nil), ("\u{1B}[31m", "[31m"),
    (String(repeating: "e\u{301}", count: 500), String(repeating: "e\u{301}", count: 100)),
  ])
  func `is bounded and printable`(_ text: String, _ expected: String?) {
    #expect(TagText.bounded(text) == expected)
  }
}

@Suite struct ArtworkAddressTests {
  @Test func `a path is written so that both servers read it back`() throws {
    let path = "Höhle & Co/100% +#?.mp3"
    let url = MediaSource.url(forPath: path)
    let address = ArtworkEndpoint.path(ofMediaURL: url)
    #expect(address == "/artwork?url=media:H%C3%B6hle%20%26%20Co/100%2525%20%2B%23%3F.mp3")
    #expect(try MediaSource(url) == .file(path: path))
  }

  @Test func `one that is too long is none`() {
    var details = TrackDetails(title: nil, durationMilliseconds: nil, codec: "mp3", isPassthrough: false)
    details.artwork = "https://a/" + String(repeating: "a", count: 2_038)
    #expect(details.artwork != nil)
    details.artwork = "https://a/" + String(repeating: "a", count: 2_039)
    #expect(details.artwork == nil)
  }
}
