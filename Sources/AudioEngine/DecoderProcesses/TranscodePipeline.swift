import CFFmpeg
import WireProtocol

/// Decodes, resamples, applies the volume and limits peaks, cuts into 20 ms frames and encodes.
struct TranscodePipeline: PacketPipeline, ~Copyable {
  /// Packets that one step makes at most: a frame may have many seconds.
  private static let packetsPerStep = 25
  private static let frameValueCount = OpusEncoder.frameSampleCount * Resampler.channelCount

  private var decoder: Decoder
  private var resampler: Resampler?
  private var encoder: OpusEncoder
  private let volume: Float
  private var limiter: Limiter
  private let startSeconds: Double
  /// Samples still to be thrown away before the start; nil until the first frame says where it is.
  private var samplesToSkip: Int?
  /// Silent samples, at the source's rate, that are put before the first frame.
  private var leadingSilence: Int32 = 0
  /// Interleaved samples not yet encoded. Keeps its capacity: a step allocates nothing.
  private var pending: [Float] = []
  private var packet = [UInt8](repeating: 0, count: OpusEncoder.maximumPacketByteCount)
  private var samplesTaken = 0
  /// The most samples there are from the start on, where that is known exactly.
  private let sampleLimit: Int
  private var packetsWritten = 0
  /// The source has ended; the decoder may hold some still.
  private var isEnding = false

  init(
    decoder: consuming Decoder, encoder: consuming OpusEncoder, volume: Double, startMilliseconds: Int,
    endSeconds: Double?
  ) {
    self.decoder = decoder
    self.encoder = encoder
    self.volume = Float(volume)
    limiter = Limiter(volume: self.volume)
    startSeconds = Double(startMilliseconds) / 1000
    samplesToSkip = startMilliseconds == 0 ? 0 : nil
    let length = endSeconds.map { ($0 - Double(startMilliseconds) / 1000) * Double(Resampler.sampleRate) }
    sampleLimit = length.flatMap { Int(exactly: $0.rounded()) }.map { max(0, $0) } ?? .max
  }

  mutating func advance(
    _ demuxer: inout Demuxer, into writer: PacketBatch
  ) throws(ErrorReport) -> PipelineStep {
    guard try encodeWholeFrames(into: writer) else { return .hasMore }
    guard let frame = decoder.receive() else {
      guard !isEnding else {
        try finish(into: writer)
        return .ended
      }
      let demuxed = try demuxer.next()
      if let metadata = demuxer.takeMetadata() { try writer.tell(metadata) }
      isEnding = demuxed == nil
      // A packet that cannot be decoded is left out, as every player does.
      _ = decoder.send(demuxed)
      return .hasMore
    }
    if samplesToSkip == nil {
      var seconds = demuxer.time(frame.pointee.best_effort_timestamp) ?? 0
      let rate = frame.pointee.sample_rate
      leadingSilence = Resampler.samplesBehindGrid(seconds: seconds, rate: rate)
      seconds -= Double(leadingSilence) / Double(max(1, rate))
      let samples = ((startSeconds - seconds) * Double(Resampler.sampleRate)).rounded()
      guard let skip = Int(exactly: samples) else {
        throw ErrorReport(
          .sourceCorrupt, "a time stamp says \(seconds) s", hint: "check the file", stage: .decode)
      }
      guard skip >= -OpusEncoder.frameSampleCount else { return .landedBehind }
      samplesToSkip = max(0, skip)
    }
    try resample(frame)
    return .hasMore
  }

  /// Begins again after another seek.
  mutating func restart() {
    decoder.flush()
    isEnding = false
    resampler = nil
    samplesToSkip = nil
    pending.removeAll(keepingCapacity: true)
    limiter = Limiter(volume: volume)
  }

  private mutating func resample(_ frame: UnsafeMutablePointer<AVFrame>) throws(ErrorReport) {
    let start = pending.count
    // A stream may change its format in the middle: what is inside the old resampler comes first.
    if resampler?.format != Resampler.Format(frame) {
      resampler?.convert(nil, into: &pending)
      resampler = try Resampler(for: frame)
      resampler?.insertSilence(sampleCount: leadingSilence)
      leadingSilence = 0
    }
    resampler?.convert(frame, into: &pending)
    skip(from: start)
  }

  /// Throws away what was decoded before the start or behind the end, and counts what stays.
  private mutating func skip(from start: Int) {
    let added = (pending.count - start) / Resampler.channelCount
    let skipped = min(added, samplesToSkip ?? 0)
    samplesToSkip = (samplesToSkip ?? 0) - skipped
    pending.removeSubrange(start..<start + skipped * Resampler.channelCount)
    let kept = min(added - skipped, sampleLimit - samplesTaken)
    pending.removeLast((added - skipped - kept) * Resampler.channelCount)
    samplesTaken += kept
  }

  /// - Returns: false where there are more of them than a step makes.
  private mutating func encodeWholeFrames(into writer: PacketBatch) throws(ErrorReport) -> Bool {
    limiter.advance(&pending)
    let end =
      min(
        limiter.finishedCount / Self.frameValueCount, Self.packetsPerStep) * Self.frameValueCount
    for offset in stride(from: 0, to: end, by: Self.frameValueCount) { try encode(at: offset, into: writer) }
    pending.removeFirst(end)
    limiter.removeFirst(end)
    return limiter.finishedCount < Self.frameValueCount
  }

  /// At the end: what decoder and resampler still hold, then silence until the encoder's delay is out, so
  /// that every sample of the source is heard.
  private mutating func finish(into writer: PacketBatch) throws(ErrorReport) {
    let start = pending.count
    resampler?.convert(nil, into: &pending)
    skip(from: start)
    guard samplesTaken > 0 else { return }
    let frame = OpusEncoder.frameSampleCount
    let packetCount = (samplesTaken + encoder.lookaheadSampleCount + frame - 1) / frame
    let missing = (packetCount - packetsWritten) * Self.frameValueCount - pending.count
    // One block more for the limiter to look at.
    pending.append(contentsOf: repeatElement(0, count: missing + Limiter.blockValueCount))
    while try !encodeWholeFrames(into: writer) {}
  }

  private mutating func encode(at offset: Int, into writer: PacketBatch) throws(ErrorReport) {
    let count = try pending.withUnsafeBufferPointer { (samples) throws(ErrorReport) in
      try packet.withUnsafeMutableBufferPointer { (packet) throws(ErrorReport) in
        try encoder.encode(samples.baseAddress! + offset, into: packet)
      }
    }
    packet.withUnsafeBytes { writer.append(UnsafeRawBufferPointer(rebasing: $0[..<count])) }
    packetsWritten += 1
  }
}
