/// One session as `hello`, `status` and the HTTP endpoints show it (`docs/wire-protocol.md`, "session object").
public struct SessionSnapshot: Codable, Sendable, Equatable {
  public var sessionID: SessionID
  public var state: State
  /// The cursor has reached the end of what is produced.
  public var buffering: Bool?
  public var url: String?
  /// The play's own name for what plays.
  public var tag: String?
  public var title: String?
  public var artist: String?
  public var album: String?
  /// A picture: an http(s) URL, or `/artwork?url=…`, a path on both servers.
  public var artwork: String?
  /// A stream without an end; absent where it has one.
  public var live: Bool?
  /// Of a radio station: its name.
  public var station: String?
  public var genre: String?
  /// In the answer to `status` alone: a list of sessions has no room for them.
  public var chapters: [Chapter]?
  public var durationMilliseconds: Int?
  /// The next packet's position.
  public var positionMilliseconds: Int?
  /// When the next packet is due, while streaming: `CLOCK_MONOTONIC`.
  public var dueNanoseconds: UInt64?
  public var volume: Double?
  public var loop: Bool?
  /// Where the play gave one, in kbit/s.
  public var bitrateKilobits: Int?
  public var codec: String?
  public var passthrough: Bool?
  /// The muted voices of an endless score; nil where nothing was ever muted.
  public var muted: [Score.Role]?

  /// The states a session can be seen in.
  public enum State: String, Codable, Sendable, CaseIterable {
    case idle, extracting, streaming, paused
  }

  public init(sessionID: SessionID, state: State) {
    self.sessionID = sessionID
    self.state = state
  }

  enum CodingKeys: String, CodingKey {
    case state, buffering, url, tag, title, artist, album, artwork, live, station, genre, chapters, volume
    case loop, codec, passthrough, muted
    case sessionID = "session_id"
    case bitrateKilobits = "bitrate_kbps"
    case durationMilliseconds = "duration_ms"
    case positionMilliseconds = "position_ms"
    case dueNanoseconds = "due_ns"
  }
}
