/// The answer to "why is it silent?" as far as the engine knows (`docs/wire-protocol.md`, "why").
public struct Diagnosis: Codable, Sendable, Equatable {
  public var state: SessionSnapshot.State
  /// One or two sentences for the person who asks.
  public var summary: String
  /// In the order in which they ended.
  public var stages: [StageRecord]
  public var underruns: Underruns
  /// What has gone out since `play`.
  public var sent: Sent
  /// How often a broken connection or an expired address was taken up again.
  public var restarts: Int
  public var lastError: ErrorReport?
  /// How the session's last track ended, where nothing plays now.
  public var ended: Ended?

  /// Times in which nothing was under the cursor at its deadline.
  public struct Underruns: Codable, Sendable, Equatable {
    public var count = 0
    public var totalMilliseconds = 0.0
    public var longestMilliseconds = 0.0

    public init() {}

    enum CodingKeys: String, CodingKey {
      case count
      case totalMilliseconds = "total_ms"
      case longestMilliseconds = "longest_ms"
    }
  }

  /// Opus packets, and their bytes without any header.
  public struct Sent: Codable, Sendable, Equatable {
    public var packets = 0
    public var bytes = 0

    public init() {}
  }

  public struct Ended: Codable, Sendable, Equatable {
    public var reason: EngineEvent.EndReason
    public var agoMilliseconds: Int

    public init(reason: EngineEvent.EndReason, agoMilliseconds: Int) {
      self.reason = reason
      self.agoMilliseconds = agoMilliseconds
    }

    enum CodingKeys: String, CodingKey {
      case reason
      case agoMilliseconds = "ago_ms"
    }
  }

  public init(
    state: SessionSnapshot.State, summary: String, stages: [StageRecord] = [],
    underruns: Underruns = Underruns(), sent: Sent = Sent(), restarts: Int = 0,
    lastError: ErrorReport? = nil
  ) {
    self.state = state
    self.summary = summary
    self.stages = stages
    self.underruns = underruns
    self.sent = sent
    self.restarts = restarts
    self.lastError = lastError
  }

  enum CodingKeys: String, CodingKey {
    case state, summary, stages, underruns, sent, restarts, ended
    case lastError = "last_error"
  }
}
