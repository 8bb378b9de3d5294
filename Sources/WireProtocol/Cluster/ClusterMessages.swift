/// NATS subjects. IDs of routers and engines are single tokens: lower-case letters and digits.
public enum ClusterSubject {
  /// Every engine's `EngineHeartbeat`, once a second.
  public static let heartbeats = "antiphon.hb"
  /// Asks all engines for a heartbeat at once.
  public static let discovery = "antiphon.discover"

  /// Every Router's `RouterHeartbeat`, once a second.
  public static let routerHeartbeats = "antiphon.rthb"
  /// Asks all Routers for a heartbeat at once.
  public static let routerDiscovery = "antiphon.rtdiscover"
  /// A request that a Router answers with its heartbeat.
  public static func routerPing(_ router: String) -> String { "antiphon.rt.\(router).ping" }

  /// A request with an `AttachmentRequest`, answered once the engine has the router for an attached one.
  public static func open(_ engine: String) -> String { "antiphon.eng.\(engine).open" }
  /// A request that an engine answers with its heartbeat.
  public static func ping(_ engine: String) -> String { "antiphon.eng.\(engine).ping" }

  /// Frames to an engine; `*` for the router in what the engine subscribes to.
  public static func toEngine(_ engine: String, from router: String) -> String {
    "antiphon.eng.\(engine).from.\(router)"
  }
  /// Frames to a router; `*` for the engine in what the router subscribes to.
  public static func toRouter(_ router: String, from engine: String) -> String {
    "antiphon.rt.\(router).from.\(engine)"
  }

  /// The last token of a subject: who has sent a frame.
  public static func sender(_ subject: String) -> String {
    String(subject.split(separator: ".").last ?? "")
  }

  /// A new ID for a process, another at each start.
  public static func newID(prefix: String) -> String {
    prefix + String(UInt64.random(in: .min ... .max), radix: 36)
  }
}

/// Times of the protocol between routers and engines on NATS.
public enum ClusterTiming {
  /// Between two heartbeats, and between two idle frames.
  public static let heartbeatMilliseconds: Int64 = 1_000
  /// An engine lets go of a router of which nothing came for this long.
  public static let attachmentLeaseMilliseconds: Int64 = 5_000
  /// An engine to which no router has been attached for this long stops its sessions: others play them by now.
  public static let abandonedMilliseconds: Int64 = 15_000
}

/// Asks an engine to have a router for an attached one.
public struct AttachmentRequest: Codable, Sendable, Equatable {
  public var router: String
  public var attachment: UInt64

  public init(router: String, attachment: UInt64) {
    self.router = router
    self.attachment = attachment
  }
}

/// What an engine says of itself once a second.
public struct EngineHeartbeat: Codable, Sendable, Equatable {
  public var engine: String
  /// The share that is taken of what transcoding may use, as admission measures it: 1 and above refuses more.
  public var load: Double
  /// Processes with the same one share a clock; nil where it is not known.
  public var machine: String?
  /// Whether it stops, so that nothing more is to be placed on it.
  public var isStopping: Bool

  public init(engine: String, machine: String?, load: Double, isStopping: Bool = false) {
    self.engine = engine
    self.machine = machine
    self.load = load
    self.isStopping = isStopping
  }

  enum CodingKeys: String, CodingKey {
    case engine, load, machine
    case isStopping = "stopping"
  }
}
