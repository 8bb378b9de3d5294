/// One thing that happened on the way from a command to its sound (`docs/wire-protocol.md`, "why").
public struct StageRecord: Codable, Sendable, Equatable {
  public var stage: Stage
  /// When it ended, in milliseconds since the session's `play` was asked for. Negative where the session
  /// found what another had begun.
  public var atMilliseconds: Double
  /// How long it took; nil for a moment.
  public var milliseconds: Double?
  /// In words, where there is more to say.
  public var detail: String?

  public enum Stage: String, Codable, Sendable, CaseIterable {
    /// Waiting for a worker.
    case queue
    /// A page's address to a media address.
    case extract
    /// A name to an address.
    case resolve
    /// To the source's first byte: a file's opening, or connection, request and response head.
    case connect
    /// Finding out what the source is.
    case probe
    case firstPacket = "first_packet"
    /// The first packet was handed to the routers.
    case firstFrameOut = "first_frame_out"
    /// A broken connection or an expired address was taken up again.
    case restart
    /// Nothing was under the cursor at its deadline.
    case underrun
    case error
  }

  public init(stage: Stage, atMilliseconds: Double, milliseconds: Double? = nil, detail: String? = nil) {
    self.stage = stage
    self.atMilliseconds = atMilliseconds
    self.milliseconds = milliseconds
    self.detail = detail
  }

  enum CodingKeys: String, CodingKey {
    case stage, detail
    case atMilliseconds = "at_ms"
    case milliseconds = "ms"
  }
}
