import AudioEngineCore
import Testing
import WireProtocol

/// What a tag among a live stream's segments says (ID3v2.3 and ID3v2.4).
@Suite struct StreamMetadataTests {
  private func frame(_ name: String, _ text: [UInt8], version: UInt8 = 4) -> [UInt8] {
    let count = UInt8(text.count)
    let size = version == 4 ? [0, 0, count >> 7, count & 0x7F] : [0, 0, 0, count]
    return Array(name.utf8) + size + [0, 0] + text
  }

  private func tag(_ frames: [UInt8], version: UInt8 = 4, flags: UInt8 = 0) -> [UInt8] {
    let size = [UInt8(0), 0, UInt8(frames.count >> 7), UInt8(frames.count & 0x7F)]
    return Array("ID3".utf8) + [version, 0, flags] + size + frames
  }

  @Test(
    arguments: [
      [0, 0x4A, 0xF3, 0x67, 0x61],
      [1, 0xFF, 0xFE, 0x4A, 0, 0xF3, 0, 0x67, 0, 0x61, 0, 0, 0, 0x58, 0],
      [1, 0xFE, 0xFF, 0, 0x4A, 0, 0xF3, 0, 0x67, 0, 0x61],
      [2, 0, 0x4A, 0, 0xF3, 0, 0x67, 0, 0x61],
      [3, 0x4A, 0xC3, 0xB3, 0x67, 0x61, 0],
    ] as [[UInt8]]) func titlesAreReadInEveryEncoding(text: [UInt8])
  {
    for version: UInt8 in [3, 4] {
      let frames =
        frame("PRIV", [1, 2, 3], version: version) + frame("TIT2", text, version: version)
        + frame("TPE1", [3] + Array("Björk".utf8), version: version)
      #expect(
        StreamMetadata(id3: tag(frames, version: version)) == StreamMetadata(title: "Jóga", artist: "Björk"))
    }
  }

  @Test func sizesAreOfSevenBitsInTheLaterVersionAndOfEightInTheOther() {
    let text = [3] + [UInt8](repeating: UInt8(ascii: "a"), count: 150)
    for version: UInt8 in [3, 4] {
      let title = StreamMetadata(id3: tag(frame("TIT2", text, version: version), version: version))?.title
      #expect(title?.count == 150)
    }
  }

  @Test func anArtistInTheTitleIsRead() {
    let metadata = StreamMetadata(id3: tag(frame("TIT2", [3] + Array("Ann - One".utf8))))
    #expect(metadata == StreamMetadata(title: "One", artist: "Ann"))
  }

  @Test func whatIsNoTagOrIsCutSaysNothing() {
    let whole = tag(frame("TIT2", [3] + Array("One".utf8)))
    for count in 0..<whole.count { #expect(StreamMetadata(id3: whole.prefix(count)) == nil) }
    #expect(StreamMetadata(id3: tag(frame("PRIV", [1]))) == nil)
    #expect(StreamMetadata(id3: tag(frame("TIT2", [3, 0x61]), flags: 0x80)) == nil)
    #expect(StreamMetadata(id3: tag(frame("TIT2", [3, 0x61]), version: 2)) == nil)
  }

  @Test func noBytesDoHarm() {
    let whole = tag(frame("TIT2", [1, 0xFF, 0xFE, 0x4A, 0]) + frame("TPE1", [3, 0x61]))
    for index in whole.indices {
      for byte: UInt8 in [0, 1, 0x7F, 0x80, 0xFF] {
        var bytes = whole
        bytes[index] = byte
        let metadata = StreamMetadata(id3: bytes)
        #expect(metadata?.title?.count ?? 0 < 100)
      }
    }
  }
}
