import WireProtocol

/// One piece as pages show it: the WebSocket's `music`, and an entry of a repository's list of events.
struct MusicMessage: Encodable, Sendable {
  let type = "music"
  var sessionID: SessionID
  var number: Int
  var event: EventView
  var parameters: MusicalParameters
  /// Where in the session it begins; nil where it was not performed there.
  var positionMilliseconds: Int?
  var durationMilliseconds: Int
  var notes: NoteList

  enum CodingKeys: String, CodingKey {
    case type, number, event
    case sessionID = "session_id"
    case parameters = "params"
    case positionMilliseconds = "position_ms"
    case durationMilliseconds = "duration_ms"
  }

  init(_ music: GeneratedMusic, positionMilliseconds: Int?) {
    self.init(
      number: music.number, event: music.event, parameters: music.parameters, score: music.score,
      positionMilliseconds: positionMilliseconds)
    sessionID = music.sessionID
  }

  /// - Parameter score: nil where it is no longer kept.
  init(
    number: Int, event: RepositoryEvent, parameters: MusicalParameters, score: Score?,
    positionMilliseconds: Int? = nil
  ) {
    sessionID = event.repositoryID
    self.number = number
    self.event = EventView(event)
    self.parameters = parameters
    self.positionMilliseconds = positionMilliseconds
    durationMilliseconds = score?.length.map(NoteList.milliseconds) ?? parameters.durationMs
    notes = NoteList(score)
  }

  func encode(to encoder: any Encoder) throws {
    var fields = encoder.container(keyedBy: CodingKeys.self)
    try fields.encode(type, forKey: .type)
    try fields.encode(sessionID, forKey: .sessionID)
    try fields.encode(number, forKey: .number)
    try fields.encode(event, forKey: .event)
    try fields.encode(parameters, forKey: .parameters)
    try fields.encodeIfPresent(positionMilliseconds, forKey: .positionMilliseconds)
    try fields.encode(durationMilliseconds, forKey: .durationMilliseconds)
    try notes.encode(to: encoder)
  }
}

/// An event as others are shown it.
struct EventView: Encodable, Sendable {
  var kind: String
  var action: String?
  var sender: String
  var title: String
  var url: String?
  var branch: String?
  var outcome: RepositoryEvent.Outcome?
  var commits: Int
  var receivedMilliseconds: Int
  var repository: String

  enum CodingKeys: String, CodingKey {
    case kind, action, sender, title, url, branch, outcome, commits, repository
    case receivedMilliseconds = "received_ms"
  }

  init(_ event: RepositoryEvent) {
    kind = event.kind.rawValue
    action = event.action
    sender = event.sender
    title = event.title
    url = event.url
    branch = event.branch
    outcome = event.outcome
    commits = event.commits
    receivedMilliseconds = event.receivedMilliseconds
    repository = event.repositoryName
  }
}

/// A score's notes for drawing: `voices` with their roles, and `notes`, each
/// `[voice, start_ms, length_ms, pitch, velocity]`.
struct NoteList: Encodable, Sendable {
  private struct Voice: Encodable {
    var role: Score.Role
    var instrument: Score.Instrument
  }

  private var voices: [Voice]
  private var notes: [[Int]]

  private enum Key: String, CodingKey {
    case voices, notes
  }

  /// - Parameter score: nil for none.
  init(_ score: Score?) {
    voices = score?.voices.map { Voice(role: $0.role, instrument: $0.instrument) } ?? []
    notes =
      score?.notes.map { note in
        [
          note.voice, Self.milliseconds(note.start), Self.milliseconds(note.length), note.pitch,
          note.velocity,
        ]
      } ?? []
  }

  static func milliseconds(_ samples: Int) -> Int { samples / ScoreLimits.samplesPerMillisecond }

  func encode(to encoder: any Encoder) throws {
    var fields = encoder.container(keyedBy: Key.self)
    try fields.encode(voices, forKey: .voices)
    try fields.encode(notes, forKey: .notes)
  }
}
