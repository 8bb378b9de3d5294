import AudioEngineCore
import FoundationEssentials
import Testing

struct DemoTracksTests {
  private static let titles = ["Response", "Versicle"]
  /// Written once for all tests: a debug build takes seconds over it.
  private static let pieces = Result { try withDirectory { directory in try written(into: directory) } }

  @Test func `another run writes the same bytes, and the next leaves the files alone`() throws {
    let expected = try Self.pieces.get()
    try Self.withDirectory { directory in
      #expect(try Self.written(into: directory) == expected, "the bytes differ between two runs")
      try Data([1]).write(to: URL(filePath: directory + "/Versicle.wav"))
      #expect(try Self.written(into: directory) == [expected[0], [1]])
      let names = try FileManager.default.contentsOfDirectory(atPath: directory).sorted()
      #expect(names == ["Response.wav", "Versicle.wav"], "and nothing temporary")
    }
  }

  @Test
  func
    `each piece is named, 40 seconds of 48 kHz stereo, loud enough, unclipped, without a click at the ends`()
    throws
  {
    let pieces = try Self.pieces.get()
    #expect(pieces[0] != pieces[1])
    for (title, file) in zip(Self.titles, pieces) {
      #expect(text(file, 0, 4) == "RIFF" && text(file, 8, 8) == "WAVEfmt ")
      #expect(number(file, 4, 4) == file.count - 8)
      // Format 1 is PCM; then channels, rate, bytes a second, bytes a frame, bits.
      #expect(
        [(20, 2), (22, 2), (24, 4), (28, 4), (32, 2), (34, 2)].map { number(file, $0.0, $0.1) } == [
          1, 2, 48_000, 192_000, 4, 16,
        ])
      // LIST INFO: the title is 8 letters, a zero and a byte of padding.
      #expect(text(file, 36, 4) == "LIST" && text(file, 44, 8) == "INFOINAM" && text(file, 56, 8) == title)
      #expect(text(file, 66, 4) == "IART" && text(file, 74, 8) == "Antiphon")
      #expect(text(file, 84, 4) == "data" && number(file, 88, 4) == file.count - 92)

      let samples = stride(from: 92, to: file.count, by: 2).map {
        Int(Int16(truncatingIfNeeded: number(file, $0, 2)))
      }
      #expect((35...50).contains(samples.count / 96_000))
      let peak = samples.reduce(0) { max($0, abs($1)) }
      #expect((22_500...23_500).contains(peak), "−3 dBFS is 23,197; \(title) peaks at \(peak)")
      #expect(samples.prefix(20).allSatisfy { abs($0) < 300 }, "\(title) begins softly")
      #expect(samples.suffix(4_800).allSatisfy { $0 == 0 }, "the last 50 ms of \(title) are silent")
      #expect(samples.prefix(192_000).contains { abs($0) > 2_000 }, "\(title) is heard within two seconds")
    }
  }

  @Test(arguments: [
    // D, the last chord of the strings; E minor, the first of the voices.
    ("Versicle", 34.5, [146.83, 220, 293.66, 369.99]), ("Response", 1.5, [82.41, 246.94, 329.63, 392]),
  ])
  func `the chord that was written is heard`(title: String, at seconds: Double, pitches: [Double]) throws {
    let file = try Self.pieces.get()[try #require(Self.titles.firstIndex(of: title))]
    let first = 92 + 4 * Int(seconds * 48_000)
    let left = stride(from: first, to: first + 4 * 65_536, by: 4).map {
      Float(Int16(truncatingIfNeeded: number(file, $0, 2)))
    }
    let spectrum = Spectrum(left)
    for pitch in pitches {
      let semitone = 0.0595 * pitch
      let own = spectrum.share { abs($0 - pitch) < semitone / 4 }
      let besides = spectrum.share { abs($0 - pitch) < semitone && abs($0 - pitch) > semitone / 2 }
      #expect(own > 3 * besides, "\(title) sounds at \(pitch) Hz, and not beside it")
    }
  }

  private static func written(into directory: String) throws -> [[UInt8]] {
    try DemoTracks.write(into: directory)
    return try titles.map { [UInt8](try Data(contentsOf: URL(filePath: directory + "/" + $0 + ".wav"))) }
  }

  private static func withDirectory<Value>(_ body: (String) throws -> Value) throws -> Value {
    let directory = FileManager.default.temporaryDirectory.path + "/antiphon-samples-\(UUID().uuidString)"
    defer { try? FileManager.default.removeItem(atPath: directory) }
    return try body(directory)
  }

  private func text(_ file: [UInt8], _ offset: Int, _ count: Int) -> String {
    String(decoding: file[offset..<offset + count], as: UTF8.self)
  }

  private func number(_ file: [UInt8], _ offset: Int, _ count: Int) -> Int {
    (0..<count).reduce(0) { $0 | Int(file[offset + $1]) << (8 * $1) }
  }
}
