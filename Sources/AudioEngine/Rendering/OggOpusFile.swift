import NIOCore
import OggOpus
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
  /// libopus's complexity, 0 to 10: above it, a packet takes much longer and is hardly better.
  private static let complexity = 5
  /// A second.
  private static let packetsPerPage = 50

  static func bytes(of score: Score) throws(ErrorReport) -> Data {
    var encoder = try OpusEncoder(bitsPerSecond: bitsPerSecond, complexity: complexity)
    let preSkip = encoder.lookaheadSampleCount
    // The encoder's delay goes before the sound, so that its end needs so many samples more.
    let sampleCount = preSkip + (score.length ?? 0)
    var muxer: OggOpusMuxer
    do {
      muxer = try OggOpusMuxer(serial: Int32(truncatingIfNeeded: score.seed), preSkip: UInt16(preSkip))
    } catch {
      throw ErrorReport(.internal, "no memory for an Ogg file", stage: .encode)
    }
    var file = muxer.headers(title: score.title)
    var page: [ByteBuffer] = []
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
      let bytes = ByteBuffer(bytes: packet[..<byteCount])
      if renderer.position >= sampleCount {
        file.writeImmutableBuffer(muxer.page(page))
        file.writeImmutableBuffer(muxer.end(bytes, sampleCount: Int64(sampleCount - start)))
      } else {
        page.append(bytes)
        guard page.count == Self.packetsPerPage else { continue }
        file.writeImmutableBuffer(muxer.page(page))
        page.removeAll(keepingCapacity: true)
      }
    }
    return Data(file.readableBytesView)
  }
}
