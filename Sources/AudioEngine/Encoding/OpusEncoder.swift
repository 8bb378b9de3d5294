import COpus
import WireProtocol

/// 960 samples of 48 kHz stereo to one Opus packet. Owns libopus's encoder.
package struct OpusEncoder: ~Copyable {
  static let frameSampleCount = 960
  /// The most bytes of one 20 ms frame with its TOC byte (RFC 6716, sections 3.1 and 3.2.1).
  static let maximumPacketByteCount = 1276

  // Safe: made in `init`, used only by the worker that owns this value, freed in `deinit`.
  private let encoder: OpaquePointer
  /// Samples by which the decoded sound is late (RFC 7845, section 4.2); 312 at 48 kHz.
  let lookaheadSampleCount: Int

  /// - Parameters:
  ///   - bitsPerSecond: 6,000 to 510,000.
  ///   - complexity: 0 to 10.
  package init(
    bitsPerSecond: Int, complexity: Int, application: Int32 = OPUS_APPLICATION_AUDIO
  ) throws(ErrorReport) {
    var status: Int32 = 0
    let encoder = opus_encoder_create(
      Int32(Resampler.sampleRate), Int32(Resampler.channelCount), application, &status)
    guard let encoder, status == OPUS_OK else {
      throw ErrorReport(
        .internal, "no Opus encoder: \(String(cString: opus_strerror(status)))", stage: .encode)
    }
    var lookahead: Int32 = 0
    guard antiphon_opus_set_bitrate(encoder, Int32(bitsPerSecond)) == OPUS_OK,
      antiphon_opus_set_complexity(encoder, Int32(complexity)) == OPUS_OK,
      antiphon_opus_get_lookahead(encoder, &lookahead) == OPUS_OK
    else {
      opus_encoder_destroy(encoder)
      throw ErrorReport(
        .internal, "the Opus encoder refuses \(bitsPerSecond) bit/s at complexity \(complexity)",
        stage: .encode)
    }
    self.encoder = encoder
    lookaheadSampleCount = Int(lookahead)
  }

  deinit { opus_encoder_destroy(encoder) }

  /// An encoder for packets that stand between those of others: its sound is late by one overlap, 120 samples,
  /// only (RFC 6716, section 4.3.7). From complexity 5 on it follows the pitch as they do.
  static func forSplices() throws(ErrorReport) -> OpusEncoder {
    try OpusEncoder(
      bitsPerSecond: 192_000, complexity: 5, application: OPUS_APPLICATION_RESTRICTED_LOWDELAY)
  }

  /// Begins anew, as an encoder that was just made, with its settings as they are.
  mutating func reset() { _ = antiphon_opus_reset_encoder(encoder) }

  /// Whether the packets that follow may lean on those before them; a new encoder's do.
  mutating func setPrediction(_ isOn: Bool) { _ = antiphon_opus_set_prediction(encoder, isOn) }

  /// Encodes one frame.
  ///
  /// - Parameters:
  ///   - frame: 1,920 interleaved samples.
  ///   - packet: at least `maximumPacketByteCount` bytes.
  /// - Returns: the packet's length.
  package mutating func encode(
    _ frame: UnsafePointer<Float>, into packet: UnsafeMutableBufferPointer<UInt8>
  ) throws(ErrorReport) -> Int {
    let count = opus_encode_float(
      encoder, frame, Int32(Self.frameSampleCount), packet.baseAddress!, Int32(Self.maximumPacketByteCount))
    guard count > 0 else {
      throw ErrorReport(.internal, "libopus: \(String(cString: opus_strerror(count)))", stage: .encode)
    }
    return Int(count)
  }

  /// Every packet gets the same number of bytes; without it, each gets what its sound needs.
  mutating func useConstantRate() throws(ErrorReport) {
    guard antiphon_opus_set_vbr(encoder, 0) == OPUS_OK else {
      throw ErrorReport(.internal, "the Opus encoder refuses a constant bit rate", stage: .encode)
    }
  }
}

extension OpusEncoder {
  /// Encodes a second of noise, about the hardest there is, on the calling thread.
  ///
  /// - Returns: the packets made, and their CPU time.
  static func measure(_ settings: EncodingSettings) throws(ErrorReport) -> (packets: Int, nanoseconds: UInt64)
  {
    var encoder = try make(settings, kilobitsPerSecond: nil)
    var buffer = [UInt8](repeating: 0, count: maximumPacketByteCount)
    var noise = SystemRandomNumberGenerator()
    let frame = (0..<frameSampleCount * Resampler.channelCount).map { _ in
      Float.random(in: -0.3...0.3, using: &noise)
    }
    let start = EngineThread.cpuNanoseconds
    for _ in 0..<TimeSlice.packetCount {
      _ = try buffer.withUnsafeMutableBufferPointer { (buffer) throws(ErrorReport) in
        try encoder.encode(frame, into: buffer)
      }
    }
    return (TimeSlice.packetCount, EngineThread.cpuNanoseconds - start)
  }
}
