/// The first event on a connection: who the engine is and what plays.
public struct Hello: Codable, Sendable, Equatable {
  public var protocolVersion: Int
  public var engineVersion: String
  /// When the engine started, Unix milliseconds: another value means another engine.
  public var startedAtMilliseconds: Int
  /// `CLOCK_MONOTONIC` as this was written.
  public var nowNanoseconds: UInt64
  /// What this engine can do beyond the protocol's first version; nil for nothing.
  public var capabilities: [String]?
  public var limits: Limits
  public var sessions: [SessionSnapshot]

  /// The engine's limits that a router may want to know.
  public struct Limits: Codable, Sendable, Equatable {
    public var maximumWorkers: Int
    public var maximumSessions: Int
    public var readAheadMilliseconds: Int

    public init(maximumWorkers: Int, maximumSessions: Int, readAheadMilliseconds: Int) {
      self.maximumWorkers = maximumWorkers
      self.maximumSessions = maximumSessions
      self.readAheadMilliseconds = readAheadMilliseconds
    }

    enum CodingKeys: String, CodingKey {
      case maximumWorkers = "max_workers"
      case maximumSessions = "max_sessions"
      case readAheadMilliseconds = "read_ahead_ms"
    }
  }

  public init(
    startedAtMilliseconds: Int, nowNanoseconds: UInt64, limits: Limits, sessions: [SessionSnapshot],
    capabilities: [String]? = [Self.burst]
  ) {
    protocolVersion = WireLimits.protocolVersion
    engineVersion = WireLimits.softwareVersion
    self.startedAtMilliseconds = startedAtMilliseconds
    self.nowNanoseconds = nowNanoseconds
    self.limits = limits
    self.sessions = sessions
    self.capabilities = capabilities
  }

  /// It carries `burst` out.
  public static let burst = "burst"

  enum CodingKeys: String, CodingKey {
    case limits, sessions, capabilities
    case protocolVersion = "protocol"
    case engineVersion = "engine_version"
    case startedAtMilliseconds = "started_at_ms"
    case nowNanoseconds = "now_ns"
  }
}
