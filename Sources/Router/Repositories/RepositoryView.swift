import WireProtocol

/// A repository as lists have it.
struct RepositoryView: Codable, Sendable {
  var id: SessionID
  /// `owner/name`.
  var name: String
  var language: String?
  /// All that there ever were.
  var events: Int
  /// Since 1970.
  var lastEventMilliseconds: Int
  /// Its music's tonic.
  var key: String
  /// Of its session.
  var listeners: Int

  init(_ repository: EventLog.Repository, listeners: Int) {
    id = repository.id
    name = repository.name
    language = repository.language
    events = repository.lastNumber
    lastEventMilliseconds = repository.lastEventMilliseconds
    key = Key(of: repository.id).name
    self.listeners = listeners
  }

  enum CodingKeys: String, CodingKey {
    case id, name, language, events, key, listeners
    case lastEventMilliseconds = "last_event_ms"
  }
}

/// Those that the requester may hear.
struct RepositoryList: Codable, Sendable {
  var repositories: [RepositoryView]
  /// Whether the Router takes GitHub's deliveries.
  var webhooks: Bool
  /// What is polled, of what the requester may hear.
  var polling: [PolledSourceView]

  /// Adds what another Router knows alone: who listens there, and when it has polled.
  mutating func add(_ other: RepositoryList) {
    let listeners = Dictionary(other.repositories.map { ($0.id, $0.listeners) }, uniquingKeysWith: { $1 })
    for index in repositories.indices {
      repositories[index].listeners += listeners[repositories[index].id] ?? 0
    }
    for index in polling.indices {
      let view = other.polling.first { $0.source == polling[index].source }
      if let view, view.isNewer(than: polling[index]) { polling[index] = view }
    }
  }
}

/// One repository with its day.
struct RepositoryDetail: Encodable, Sendable {
  var repository: RepositoryView
  /// Whether its bed is playing.
  var isBedPlaying: Bool
  var muted: [Score.Role]
  var activity: [ActivityBin]
  /// What is wrong with its mapping file.
  var mappingProblem: String?
  /// nil where it is not polled.
  var polling: PolledSourceView?

  private enum Key: String, CodingKey {
    case bed, muted, activity, polling
    case mappingProblem = "mapping_problem"
  }

  func encode(to encoder: any Encoder) throws {
    try repository.encode(to: encoder)
    var fields = encoder.container(keyedBy: Key.self)
    try fields.encode(isBedPlaying, forKey: .bed)
    try fields.encode(muted, forKey: .muted)
    try fields.encode(activity, forKey: .activity)
    try fields.encodeIfPresent(mappingProblem, forKey: .mappingProblem)
    try fields.encodeIfPresent(polling, forKey: .polling)
  }
}

/// A repository's events, the newest first.
struct EventPage: Encodable, Sendable {
  var events: [MusicMessage]
  /// All that are kept.
  var total: Int
}

/// A week in a minute, for those who look at it.
struct ReplayView: Encodable, Sendable {
  struct Event: Encodable, Sendable {
    /// From the replay's beginning.
    var atMilliseconds: Int
    var event: EventView

    private enum Key: String, CodingKey {
      case at = "at_ms"
    }

    func encode(to encoder: any Encoder) throws {
      try event.encode(to: encoder)
      var fields = encoder.container(keyedBy: Key.self)
      try fields.encode(atMilliseconds, forKey: .at)
    }
  }

  /// Since 1970.
  var untilMilliseconds: Int
  var events: [Event]
  var notes: NoteList

  private enum Key: String, CodingKey {
    case events
    case until = "until_ms"
    case duration = "duration_ms"
  }

  func encode(to encoder: any Encoder) throws {
    var fields = encoder.container(keyedBy: Key.self)
    try fields.encode(untilMilliseconds, forKey: .until)
    try fields.encode(RouterLimits.replayedMilliseconds, forKey: .duration)
    try fields.encode(events, forKey: .events)
    try notes.encode(to: encoder)
  }
}
