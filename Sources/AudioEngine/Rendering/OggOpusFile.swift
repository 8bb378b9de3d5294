import WireProtocol

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// A score as an Ogg Opus file (RFC 7845), which decodes to exactly the score's samples.
enum OggOpusFile {
  /// Music of so few voices hardly differs from its source.
  private static let bitsPerSecond = 96_000
  /// Of 0 to 10: above it, a packet takes much longer and is hardly better.
  private static let complexity = 5

  static func bytes(of score: Score) throws(ErrorReport) -> Data {
    var encoder = try OpusEncoder(bitsPerSecond: bitsPerSecond, complexity: complexity)
    let preSkip = encoder.lookaheadSampleCount
    // The encoder's delay goes before the sound, so that its end needs so many samples more.
    let sampleCount = preSkip + (score.length ?? 0)
    var muxer = try OggMuxer(title: score.title, preSkip: preSkip)
    var renderer = ScoreRenderer(score)
    var frame: [Float] = []
    var packet = [UInt8](repeating: 0, count: OpusEncoder.maximumPacketByteCount)
    while renderer.position < sampleCount {
      let start = renderer.position
      frame.removeAll(keepingCapacity: true)
      renderer.render(OpusEncoder.frameSampleCount, into: &frame)
      let byteCount = try frame.withUnsafeBufferPointer { (frame) throws(ErrorReport) in
        try packet.withUnsafeMutableBufferPointer { (packet) throws(ErrorReport) in
          try encoder.encode(frame.baseAddress!, into: packet)
        }
      }
      // The last packet's end says what of it is sound (RFC 7845, section 4.4).
      let length = min(OpusEncoder.frameSampleCount, sampleCount - start)
      try muxer.write(packet[..<byteCount], start: start, sampleCount: length)
    }
    return try muxer.finish()
  }
}
