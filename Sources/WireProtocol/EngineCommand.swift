/// What a router, or an operator over HTTP, asks of the engine.
public struct EngineCommand: Sendable, Equatable {
  /// Repeated by the answer.
  public var requestID: String?
  /// For whom a router asks: equal for equal clients, at most 64 characters. The engine shares its workers, CPU and
  /// extractions between clients.
  public var client: String?
  /// Which home of the session speaks, where several Routers share the engine: a larger one is a later one. Of commands of a
  /// session alone.
  public var epoch: UInt64?
  public var action: Action

  /// The commands of version 1 that this version carries out.
  public enum Action: Sendable, Equatable {
    case session(SessionID, SessionAction)
    /// List a folder below the media root.
    case media(path: String)
    /// A part of a local file's cover, from a byte on.
    case artwork(url: String, offset: Int)
    /// Find out what an address or words lead to.
    case resolve(ResolveRequest)
    /// Render a score, faster than it sounds.
    case render(RenderRequest)
    /// What a session has just played, again, for someone who joins.
    case burst(SessionID, milliseconds: Int)
  }

  /// What can be asked of one session.
  public enum SessionAction: Sendable, Equatable {
    case play(PlayRequest)
    /// What follows when the current track has finished.
    case prepare(PlayRequest)
    /// Nothing follows after all.
    case unprepare
    case pause
    case resume
    case stop
    case seek(positionMilliseconds: Int)
    case volume(Double)
    /// A score joins the endless one that plays, at its next beat.
    case perform(Score)
    /// Which voices of an endless score are silent: the whole set, replacing the last.
    case mute([Score.Role])
    case status
    /// Why it is silent, or would be.
    case why
    /// Open what another engine plays, from a position on, and send nothing of it yet.
    case standBy(PlayRequest, positionMilliseconds: Int)
    /// What stands by begins at a position, with the packet that is due at a time of this engine's `CLOCK_MONOTONIC`;
    /// without one it stays paused there.
    case takeOver(positionMilliseconds: Int, dueNanoseconds: UInt64?)
    /// End before the packet of that position: another engine plays on from there.
    case handOver(positionMilliseconds: Int)
  }

  public init(requestID: String? = nil, client: String? = nil, epoch: UInt64? = nil, action: Action) {
    self.requestID = requestID
    self.client = client
    self.epoch = epoch
    self.action = action
  }

  public init(_ sessionID: SessionID, _ action: SessionAction, requestID: String? = nil) {
    self.init(requestID: requestID, action: .session(sessionID, action))
  }
}

/// What to play and how.
public struct PlayRequest: Codable, Sendable, Equatable {
  /// What a score is called is `score:` and nothing else.
  public var url: String
  /// What is rendered and played, instead of what an address leads to.
  public var score: Score?
  /// Where to begin, in milliseconds from the source's start.
  public var startMilliseconds: Int
  /// Where to end; nil for the source's own end.
  public var endMilliseconds: Int?
  /// Linear gain, 0 to 10.
  public var volume: Double
  public var loop: Bool
  /// Begin paused at the first packet.
  public var paused: Bool
  /// The encoder's bit rate, in kbit/s. Nil for the engine's own, and for passing Opus through.
  public var bitrateKilobits: Int?
  /// The requester's own name for this play, at most 64 characters, repeated wherever the engine says what plays.
  public var tag: String?

  public static let scoreURL = "score:"

  public init(
    url: String, score: Score? = nil, startMilliseconds: Int = 0, endMilliseconds: Int? = nil,
    volume: Double = 1, loop: Bool = false, paused: Bool = false, bitrateKilobits: Int? = nil,
    tag: String? = nil
  ) {
    self.url = url
    self.score = score
    self.startMilliseconds = startMilliseconds
    self.endMilliseconds = endMilliseconds
    self.volume = volume
    self.loop = loop
    self.paused = paused
    self.bitrateKilobits = bitrateKilobits
    self.tag = tag
  }
}

extension EngineCommand.SessionAction {
  /// The command's `type`.
  public var name: String {
    switch self {
    case .play: "play"
    case .prepare: "prepare"
    case .unprepare: "unprepare"
    case .pause: "pause"
    case .resume: "resume"
    case .stop: "stop"
    case .seek: "seek"
    case .volume: "volume"
    case .perform: "perform"
    case .mute: "mute"
    case .status: "status"
    case .why: "why"
    case .standBy: "stand_by"
    case .takeOver: "take_over"
    case .handOver: "hand_over"
    }
  }
}
