import WireProtocol

/// What one step of a production came to.
enum PipelineStep {
  case hasMore
  case ended
  /// A packet in the middle that cannot be passed through: the rest is transcoded.
  case needsTranscoding
  /// Decoding began behind the position asked for: it must begin earlier.
  case landedBehind
}

/// Demuxed packets to the timeline's packets, one demuxed packet a step.
protocol PacketPipeline: ~Copyable {
  mutating func advance(
    _ demuxer: inout Demuxer, into writer: PacketBatch
  ) throws(ErrorReport) -> PipelineStep
}

/// Forwards a source's own Opus packets unaltered.
struct PassthroughPipeline: PacketPipeline {
  /// Packets that end before it belong to what a seek skipped.
  private let startSeconds: Double
  private var hasStarted: Bool
  private static let packetSeconds = Double(WireLimits.packetDurationMilliseconds) / 1000

  init(startMilliseconds: Int) {
    startSeconds = Double(startMilliseconds) / 1000
    hasStarted = startMilliseconds == 0
  }

  mutating func advance(
    _ demuxer: inout Demuxer, into writer: PacketBatch
  ) throws(ErrorReport) -> PipelineStep {
    guard let packet = try demuxer.next() else { return .ended }
    if let metadata = demuxer.takeMetadata() { try writer.tell(metadata) }
    if !hasStarted {
      if let seconds = packet.seconds {
        if writer.count == 0, seconds > startSeconds + Self.packetSeconds { return .landedBehind }
        // The packet nearest to the position: at most half a packet off.
        guard seconds + Self.packetSeconds / 2 > startSeconds else { return .hasMore }
      }
      hasStarted = true
    }
    guard OpusPassthrough.fits(packet: packet.bytes) else { return .needsTranscoding }
    writer.append(packet.bytes)
    return .hasMore
  }
}
