import AudioEngineCore
import Testing

@Suite struct LeadingTagTests {
  private func pass(
    _ bytes: [UInt8], pieces: Int, tooRichFrom: Int = .max, through tag: inout LeadingTag
  ) -> [UInt8] {
    var output: [UInt8] = []
    for start in stride(from: 0, to: bytes.count, by: pieces) {
      var piece = Array(bytes[start..<min(bytes.count, start + pieces)])
      piece.withUnsafeMutableBytes { tag.pass($0, at: Int64(start), isTooRich: start >= tooRichFrom) }
      output += piece
    }
    return output
  }

  /// A tag of 500 bytes behind its header, and sound.
  private let tagged: [UInt8] =
    Array("ID3".utf8) + [3, 0, 0, 0, 0, 3, 116] + [UInt8](repeating: 7, count: 500)
    + [UInt8](repeating: 9, count: 200)

  @Test func `a tag that takes no time passes as it is`() {
    var tag = LeadingTag()
    #expect(pass(tagged, pieces: 64, through: &tag) == tagged)
  }

  @Test func `the rest of a tag that takes too long is padding, and the sound stays where it is`() {
    var tag = LeadingTag()
    let output = pass(tagged, pieces: 64, tooRichFrom: 128, through: &tag)
    #expect(Array(output[..<128]) == Array(tagged[..<128]))
    #expect(output[128..<510].allSatisfy { $0 == 0 })
    #expect(Array(output[510...]) == Array(tagged[510...]))
    // Read again, as libav does after it has looked what the source is.
    let again = pass(tagged, pieces: 64, through: &tag)
    #expect(Array(again[..<10]) == Array(tagged[..<10]))
    #expect(again[10..<510].allSatisfy { $0 == 0 })
  }

  @Test func `time that passes behind the tag changes nothing`() {
    var tag = LeadingTag()
    #expect(pass(tagged, pieces: 64, tooRichFrom: 576, through: &tag) == tagged)
  }

  @Test func `private frames without number are padding from the first too many on`() {
    let frame = Array("PRIV".utf8) + [0, 0, 0, 2, 0, 0, 1, 2]
    let frames = Array(repeatElement(frame, count: 1_000).joined())
    let bytes =
      Array("ID3".utf8) + [3, 0, 0, 0, 0, UInt8(frames.count >> 7), UInt8(frames.count & 127)] + frames
    for pieces in [16, 64, 4_096] {
      var tag = LeadingTag()
      let output = pass(bytes, pieces: pieces, through: &tag)
      let kept = max(10, 10 + LeadingTag.maximumPrivateFrames * frame.count - pieces)
      #expect(Array(output[..<kept]) == Array(bytes[..<kept]))
      #expect(output[(10 + (LeadingTag.maximumPrivateFrames + 1) * frame.count)...].allSatisfy { $0 == 0 })
    }
    var tag = LeadingTag()
    let few = Array("ID3".utf8) + [3, 0, 0, 0, 0, 9, 48] + frames[..<1_200]
    #expect(pass(few, pieces: 64, through: &tag) == few)
  }

  private func flac(commentByteCount: Int) -> [UInt8] {
    let comments = [
      4, UInt8(commentByteCount >> 16), UInt8(commentByteCount >> 8 & 255), UInt8(commentByteCount & 255),
    ]
    return Array("fLaC".utf8) + [0, 0, 0, 34] + [UInt8](repeating: 1, count: 34) + comments
      + [UInt8](repeating: 2, count: commentByteCount) + [0x84, 0, 0, 1, 3] + [0xFF, 0xF8]
  }

  @Test func `a FLAC file's comments pass unless they are too many`() {
    let small = flac(commentByteCount: 4_000)
    var tag = LeadingTag()
    #expect(pass(small, pieces: 4_096, through: &tag) == small)
    let large = flac(commentByteCount: LeadingTag.maximumCommentByteCount + 1)
    tag = LeadingTag()
    var expected = large
    expected[42] = 1
    #expect(pass(large, pieces: 4_096, through: &tag) == expected)
  }
}
