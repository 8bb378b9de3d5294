import AudioEngineCore
import Testing
import WireProtocol

@Suite struct OggCommentsTests {
  private func little(_ number: Int) -> [UInt8] { (0..<4).map { UInt8(number >> (8 * $0) & 255) } }

  /// Pages of one packet, of at most so many segments each.
  private func pages(_ packet: [UInt8], serial: Int, segments: Int = 255) -> [UInt8] {
    var lengths = [UInt8](repeating: 255, count: packet.count / 255) + [UInt8(packet.count % 255)]
    var (output, rest): ([UInt8], ArraySlice<UInt8>) = ([], packet[...])
    while !lengths.isEmpty {
      let page = lengths.prefix(segments)
      lengths.removeFirst(page.count)
      output +=
        Array("OggS".utf8) + [0, 0] + [UInt8](repeating: 0, count: 8) + little(serial) + little(0) + little(0)
      output += [UInt8(page.count)] + page + rest.prefix(page.map(Int.init).reduce(0, +))
      rest = rest.dropFirst(page.map(Int.init).reduce(0, +))
    }
    return output
  }

  private func file(_ name: String, comments: Int, vendor: Int = 20, segments: Int = 255) -> [UInt8] {
    let tags =
      Array(name.utf8) + little(vendor) + [UInt8](repeating: 65, count: vendor) + little(comments)
      + [UInt8](repeating: 0, count: 3_000)
    return pages([UInt8](repeating: 1, count: 19), serial: 7) + pages(tags, serial: 7, segments: segments)
      + pages([UInt8](repeating: 2, count: 9_000), serial: 7)
  }

  private func code(_ bytes: [UInt8], pieces: Int) -> ErrorCode? {
    var comments = OggComments()
    do {
      for start in stride(from: 0, to: bytes.count, by: pieces) {
        let piece = Array(bytes[start..<min(bytes.count, start + pieces)])
        try piece.withUnsafeBytes { try comments.pass($0, at: Int64(start)) }
      }
      return nil
    } catch {
      return (error as? ErrorReport)?.code
    }
  }

  @Test(arguments: ["OpusTags", "\u{3}vorbis"])
  func `too many comments are refused, however their bytes are cut`(_ name: String) {
    for pieces in [4, 5, 26, 27, 28, 300, 4_096, 100_000] {
      for segments in [1, 3, 255] {
        let limit = OggComments.maximumCount
        #expect(code(file(name, comments: limit, segments: segments), pieces: pieces) == nil)
        #expect(code(file(name, comments: limit + 1, segments: segments), pieces: pieces) == .sourceTooLarge)
        #expect(
          code(file(name, comments: 1, vendor: 2_000, segments: segments), pieces: pieces) == .sourceTooLarge)
      }
    }
  }

  @Test func `what is not Ogg, or ends at once, passes`() {
    #expect(code(Array("RIFF".utf8) + [UInt8](repeating: 255, count: 10_000), pieces: 4_096) == nil)
    #expect(code(Array("OggS".utf8) + [UInt8](repeating: 255, count: 10_000), pieces: 4_096) == nil)
    #expect(code(Array(file("OpusTags", comments: 99_999).prefix(60)), pieces: 7) == nil)
  }
}
