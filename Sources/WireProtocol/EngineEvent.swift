#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// What the engine tells its routers (`docs/wire-protocol.md`, "Events").
public struct EngineEvent: Sendable, Equatable {
  public var sessionID: SessionID?
  /// The command this answers.
  public var requestID: String?
  public var body: Body

  public enum Body: Sendable, Equatable {
    case hello(Hello)
    /// - Parameter tag: the play's.
    case extracting(url: String, tag: String? = nil)
    case ready(Ready)
    /// What follows the current track has its first packets.
    case prepared(Ready)
    case playing(Anchor)
    case paused(positionMilliseconds: Int)
    case resumed(Anchor)
    /// Without a due time while paused.
    case seeked(positionMilliseconds: Int, dueNanoseconds: UInt64?)
    case rebased(Anchor)
    case buffering(positionMilliseconds: Int)
    case stuck(positionMilliseconds: Int, waitedMilliseconds: Int)
    case dropped(count: Int)
    /// What a live source says that it plays from the next packet on.
    case metadata(StreamMetadata)
    case ended(EndReason, positionMilliseconds: Int)
    case status(SessionSnapshot)
    case why(Diagnosis)
    case media(MediaListing)
    case artwork(ArtworkPiece)
    case resolved(Resolution)
    /// A score has joined the one that plays.
    case performing(ScorePlacement)
    case muted([Score.Role])
    case rendered(RenderedPiece)
    /// So many packets of the session follow, which were sent before, for the requester alone. The place and time are the
    /// first one's; the session's next packet is the one after them.
    case burst(Anchor, count: Int)
    /// Every session that was there at a full `hello` has been named since, or has ended.
    case listed
    case error(ErrorReport)
  }

  /// The place and time of the session's next packet; each later one is 20 ms on.
  public struct Anchor: Sendable, Equatable {
    public var positionMilliseconds: Int
    /// `CLOCK_MONOTONIC`.
    public var dueNanoseconds: UInt64

    public init(positionMilliseconds: Int, dueNanoseconds: UInt64) {
      self.positionMilliseconds = positionMilliseconds
      self.dueNanoseconds = dueNanoseconds
    }
  }

  /// Why a session ended; a queue advances only after `finished` and `loadFailed`. After `moved` another engine plays on.
  public enum EndReason: String, Codable, Sendable, CaseIterable {
    case finished, loadFailed, stopped, replaced, cleanup, moved
  }

  public init(_ body: Body, sessionID: SessionID? = nil, requestID: String? = nil) {
    self.body = body
    self.sessionID = sessionID
    self.requestID = requestID
  }
}

/// What was found when a source was opened, and how long each stage took.
public struct Ready: Codable, Sendable, Equatable {
  public var url: String
  public var title: String?
  public var artist: String?
  public var album: String?
  /// A picture: an http(s) URL, or `/artwork?url=…`, a path on both servers.
  public var artwork: String?
  /// A stream without an end; absent where it has one.
  public var live: Bool?
  /// Of a radio station, as it says: its name, its genre, and the bit rate of its stream in kbit/s.
  public var station: String?
  public var genre: String?
  public var bitrate: Int?
  public var chapters: [Chapter]?
  /// As the `play` asked for them: not every router has seen it.
  public var volume: Double?
  public var loop: Bool?
  public var durationMilliseconds: Int?
  /// The source's codec, by libavcodec's name: `mp3`, `flac`, `opus`.
  public var codec: String
  /// The source's own Opus packets are sent unaltered.
  public var passthrough: Bool
  public var timings: Timings

  /// Milliseconds of each stage, from the command to the first packet.
  public struct Timings: Codable, Sendable, Equatable {
    public var queued: Double?
    public var extract: Double?
    public var resolve: Double?
    public var connect: Double?
    public var probe: Double?
    public var firstPacket: Double?
    public var total: Double?

    public init() {}

    enum CodingKeys: String, CodingKey {
      case queued, extract, resolve, connect, probe, total
      case firstPacket = "first_packet"
    }
  }

  public init(
    url: String, title: String?, durationMilliseconds: Int?, codec: String, passthrough: Bool,
    timings: Timings
  ) {
    self.url = url
    self.title = title
    self.durationMilliseconds = durationMilliseconds
    self.codec = codec
    self.passthrough = passthrough
    self.timings = timings
  }

  enum CodingKeys: String, CodingKey {
    case url, title, artist, album, artwork, live, station, genre, bitrate, chapters, volume, loop, codec
    case passthrough
    case durationMilliseconds = "duration_ms"
    case timings = "timings_ms"
  }
}

extension EngineEvent {
  /// Reads one event's JSON object.
  public static func decode(_ json: some Sequence<UInt8>) throws -> EngineEvent {
    try JSONDecoder().decode(EngineEvent.self, from: Data(json))
  }

  /// The event as a JSON object, without a newline.
  public func encoded() -> [UInt8] {
    let encoder = JSONEncoder()
    encoder.outputFormatting = .withoutEscapingSlashes
    // Encoding a value made of strings and finite numbers cannot fail.
    return (try? encoder.encode(self)).map(Array.init) ?? []
  }

  /// The event as one line with its newline.
  public func encodedLine() -> [UInt8] {
    var line = encoded()
    line.append(UInt8(ascii: "\n"))
    return line
  }
}

extension EngineEvent.Body {
  /// The event's `type`.
  public var name: String {
    switch self {
    case .hello: "hello"
    case .extracting: "extracting"
    case .ready: "ready"
    case .prepared: "prepared"
    case .playing: "playing"
    case .paused: "paused"
    case .resumed: "resumed"
    case .seeked: "seeked"
    case .rebased: "rebased"
    case .buffering: "buffering"
    case .stuck: "stuck"
    case .dropped: "dropped"
    case .metadata: "metadata"
    case .ended: "ended"
    case .status: "status"
    case .why: "why"
    case .media: "media"
    case .artwork: "artwork"
    case .resolved: "resolved"
    case .performing: "performing"
    case .muted: "muted"
    case .rendered: "rendered"
    case .burst: "burst"
    case .listed: "listed"
    case .error: "error"
    }
  }
}
