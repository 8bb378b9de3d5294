/// A RIFF file of 16-bit stereo at 48 kHz.
enum WaveFile {
  static func bytes(of samples: [Int16], title: String, artist: String) -> [UInt8] {
    let format = word16(1) + word16(2) + word32(48_000) + word32(48_000 * 4) + word16(4) + word16(16)
    let information = ascii("INFO") + chunk("INAM", ascii(title) + [0]) + chunk("IART", ascii(artist) + [0])
    var audio = [UInt8](repeating: 0, count: samples.count * 2)
    for (index, sample) in samples.enumerated() {
      audio[2 * index] = UInt8(truncatingIfNeeded: sample)
      audio[2 * index + 1] = UInt8(truncatingIfNeeded: sample >> 8)
    }
    return chunk(
      "RIFF", ascii("WAVE") + chunk("fmt ", format) + chunk("LIST", information) + chunk("data", audio))
  }

  /// A name, a length, the content, and a byte more where the length is odd.
  private static func chunk(_ name: String, _ content: [UInt8]) -> [UInt8] {
    ascii(name) + word32(UInt32(content.count)) + content + (content.count % 2 == 0 ? [] : [0])
  }

  private static func ascii(_ text: String) -> [UInt8] { Array(text.utf8) }

  private static func word16(_ value: UInt16) -> [UInt8] {
    [UInt8(truncatingIfNeeded: value), UInt8(truncatingIfNeeded: value >> 8)]
  }

  private static func word32(_ value: UInt32) -> [UInt8] {
    word16(UInt16(truncatingIfNeeded: value)) + word16(UInt16(truncatingIfNeeded: value >> 16))
  }
}
