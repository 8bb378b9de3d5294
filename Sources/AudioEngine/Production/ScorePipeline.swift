import WireProtocol

/// A score to the timeline's packets, one packet a step.
struct ScorePipeline: ~Copyable {
  private static let frameSampleCount = OpusEncoder.frameSampleCount

  private var renderer: ScoreRenderer
  private var encoder: OpusEncoder
  /// The grid that other scores join on, in samples.
  private let beat: Int
  /// Where the encoder's delay is out after the last sample; nil for an endless score.
  private let end: Int?
  private var frame: [Float] = []
  private var packet = [UInt8](repeating: 0, count: OpusEncoder.maximumPacketByteCount)

  /// - Parameter startMilliseconds: whole packets. An endless score begins there at once; another is rendered
  ///   up to there, since its notes before it may still sound.
  init(_ score: Score, encoder: consuming OpusEncoder, volume: Double, startMilliseconds: Int) {
    let start = startMilliseconds * ScoreLimits.samplesPerMillisecond
    beat = score.beat
    end = score.length.map { $0 + encoder.lookaheadSampleCount }
    renderer = ScoreRenderer(score, startingAt: score.length == nil ? start : 0)
    renderer.setGain(Float(volume))
    self.encoder = encoder
    while renderer.position < start {
      frame.removeAll(keepingCapacity: true)
      renderer.render(Self.frameSampleCount, into: &frame)
    }
  }

  /// Encodes the next frame.
  mutating func advance(into writer: inout Timeline.Writer) throws(ErrorReport) -> PipelineStep {
    if let end, renderer.position >= end { return .ended }
    frame.removeAll(keepingCapacity: true)
    renderer.render(Self.frameSampleCount, into: &frame)
    let count = try frame.withUnsafeBufferPointer { (samples) throws(ErrorReport) in
      try packet.withUnsafeMutableBufferPointer { (packet) throws(ErrorReport) in
        try encoder.encode(samples.baseAddress!, into: packet)
      }
    }
    packet.withUnsafeBytes { writer.append(UnsafeRawBufferPointer(rebasing: $0[..<count])) }
    return .hasMore
  }

  /// Does what was asked for since the last time.
  mutating func take(_ changes: LiveScoreControl.Changes) {
    if let roles = changes.muted { renderer.mute(roles) }
    if let gain = changes.gain { renderer.setGain(Float(gain)) }
    for entry in changes.joining {
      let start = (renderer.position + beat - 1) / beat * beat
      renderer.add(entry.score, at: start)
      let length = entry.score.length ?? 0
      entry.joined(.success(ScorePlacement(sample: start, length: length, title: entry.score.title)))
    }
  }
}
