import Crypto
import ServiceSupport
import WireProtocol

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// A score as sound, in one encoding.
package struct Rendering: Sendable {
  /// Samples of a score that is asked for as JSON: a minute, which is 60 MB of digits.
  static let maximumJSONSampleCount = 60 * ScoreLimits.sampleRate

  /// Equal names are equal bytes.
  package let name: String
  package let encoding: RenderEncoding
  package let sampleCount: Int
  package let bytes: Data
  /// What it took to render and encode.
  package let milliseconds: Double

  /// A name made of the score's contents and the encoding: SHA-256, in hexadecimal.
  static func name(of score: Score, as encoding: RenderEncoding) throws(ErrorReport) -> String {
    guard let length = score.length else {
      throw ErrorReport(
        .invalidCommand, "the field score.length is missing: a score without an end cannot be rendered whole",
        hint: "give it a length, or play it in a session", stage: .command)
    }
    if encoding == .json || encoding == .jsonDeflate, length > maximumJSONSampleCount {
      throw ErrorReport(
        .invalidCommand,
        "the field score.length is \(length), and as JSON \(maximumJSONSampleCount) are the most",
        hint: "ask for opus, pcm16 or wav", stage: .command)
    }
    let encoder = JSONEncoder()
    encoder.outputFormatting = .sortedKeys
    guard let contents = try? encoder.encode(score) else {
      throw ErrorReport(.internal, "the score cannot be written as JSON", stage: .command)
    }
    var hash = SHA256()
    hash.update(data: Data("\(WireLimits.softwareVersion) \(encoding.rawValue) ".utf8))
    hash.update(data: contents)
    return hash.finalize().map { byte in
      let digits = String(byte, radix: 16)
      return digits.count == 1 ? "0" + digits : digits
    }.joined()
  }

  /// Renders on the calling thread.
  ///
  /// - Parameter score: one with a length.
  init(of score: Score, as encoding: RenderEncoding, name: String) throws(ErrorReport) {
    let started = MonotonicClock.nowNanoseconds
    let length = score.length ?? 0
    bytes =
      switch encoding {
      case .opus: try OggOpusFile.bytes(of: score)
      case .pcm16: PCM16.bytes(of: Self.samples(of: score))
      case .wav:
        Data(
          WaveFile.bytes(
            of: PCM16.samples(of: Self.samples(of: score)), title: score.title ?? "", artist: "Antiphon"))
      case .json: SampleJSON.bytes(of: Self.samples(of: score))
      case .jsonDeflate: try Deflate.bytes(of: SampleJSON.bytes(of: Self.samples(of: score)))
      }
    self.name = name
    self.encoding = encoding
    sampleCount = length
    milliseconds = Double(MonotonicClock.nowNanoseconds - started) / 1_000_000
  }

  /// All samples of a score, interleaved stereo.
  package static func samples(of score: Score) -> [Float] {
    let length = score.length ?? 0
    var samples: [Float] = []
    samples.reserveCapacity(2 * length)
    var renderer = ScoreRenderer(score)
    renderer.render(length, into: &samples)
    return samples
  }

  /// What one event carries of it.
  ///
  /// - Throws: `invalid_command` where the offset is behind the end.
  func piece(from offset: Int) throws(ErrorReport) -> RenderedPiece {
    guard (0..<bytes.count).contains(offset) else {
      throw ErrorReport(
        .invalidCommand, "the offset \(offset) is past the rendering's \(bytes.count) bytes",
        hint: "ask for an earlier one", stage: .command)
    }
    let end = min(bytes.count, offset + WireLimits.maximumRenderedPieceByteCount)
    return RenderedPiece(
      rendering: name, encoding: encoding, byteCount: bytes.count, sampleCount: sampleCount, offset: offset,
      data: Data(bytes[offset..<end]))
  }
}
