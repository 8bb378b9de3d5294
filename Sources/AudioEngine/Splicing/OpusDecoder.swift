import COpus
import WireProtocol

/// Opus packets of 20 ms to 48 kHz stereo, as a listener hears them. Owns libopus's decoder.
package struct OpusDecoder: ~Copyable {
  // Safe: made in `init`, used only by the thread that owns this value, freed in `deinit`.
  private let decoder: OpaquePointer

  package init() throws(ErrorReport) {
    var status: Int32 = 0
    let decoder = opus_decoder_create(
      Int32(Resampler.sampleRate), Int32(Resampler.channelCount), &status)
    guard let decoder, status == OPUS_OK else {
      throw ErrorReport(
        .internal, "no Opus decoder: \(String(cString: opus_strerror(status)))", stage: .decode)
    }
    self.decoder = decoder
  }

  deinit { opus_decoder_destroy(decoder) }

  /// Begins anew, as a decoder that was just made.
  mutating func reset() { _ = antiphon_opus_reset_decoder(decoder) }

  /// Decodes a packet into 1,920 interleaved samples; nil, and what is no packet, is concealed as a
  /// listener's decoder would.
  package mutating func decode(_ packet: [UInt8]?, into samples: UnsafeMutableBufferPointer<Float>) {
    precondition(samples.count == OpusEncoder.frameSampleCount * Resampler.channelCount)
    let frame = Int32(OpusEncoder.frameSampleCount)
    let count =
      packet.map { opus_decode_float(decoder, $0, Int32($0.count), samples.baseAddress!, frame, 0) } ?? -1
    guard count != frame else { return }
    _ = opus_decode_float(decoder, nil, 0, samples.baseAddress!, frame, 0)
  }
}
