import GRDB
import WireProtocol

/// What happened in repositories and what music was made of it, in the Router's state on disk. Bounded by
/// `RouterLimits`: what is older goes.
package struct EventLog: Sendable {
  /// What is known of a repository.
  package struct Repository: Sendable, Equatable {
    package var id: SessionID
    /// `owner/name`.
    package var name: String
    package var language: String?
    /// The number of the newest event, and of the newest that has become music.
    package var lastNumber: Int
    package var lastComposed: Int
    /// Since 1970.
    package var lastEventMilliseconds: Int
  }

  /// What became of a delivery.
  package enum Appended: Sendable, Equatable {
    /// - Parameter evicted: a repository that had to make room for this one's.
    case new(LoggedEvent, Repository, evicted: SessionID?)
    /// It came within the last 24 hours already.
    case duplicate
  }

  /// An event that has become music, as it is kept.
  package struct Composed: Sendable, Equatable {
    package var number: Int
    package var event: RepositoryEvent
    package var parameters: MusicalParameters
    /// nil where it is no longer kept, and where the event is silent.
    package var score: Score?

    package init(number: Int, event: RepositoryEvent, parameters: MusicalParameters, score: Score?) {
      self.number = number
      self.event = event
      self.parameters = parameters
      self.score = score
    }

    /// nil where it is silent, or can be heard no more.
    package var music: GeneratedMusic? {
      score.map { GeneratedMusic(number: number, event: event, parameters: parameters, score: $0) }
    }
  }

  let store: StateStore
  /// By which events and deliveries grow old, whatever the clock on the wall says.
  let clock: CumulativeUptimeClock

  package init(store: StateStore, clock: CumulativeUptimeClock) {
    self.store = store
    self.clock = clock
  }

  /// Writes a delivery down, once.
  ///
  /// - Parameter tester: who sends a test event; nil for GitHub.
  /// - Throws: `too_many_sessions` where a test event's repository finds no room.
  package func append(_ event: RepositoryEvent, testOf tester: Grant? = nil) async throws -> Appended {
    try await store.write { [clock] database in
      guard let draft = try EventDraft(event, testOf: tester, now: clock.milliseconds(), database) else {
        return .duplicate
      }
      try draft.write(keptMilliseconds: clock.milliseconds(), database)
      return .new(draft.logged, draft.repository, evicted: draft.evicted)
    }
  }

  /// Those of the deliveries that have not come within the last 24 hours.
  func unknown(_ events: [RepositoryEvent]) async throws -> [RepositoryEvent] {
    try await store.read { database in
      try events.filter { event in try !Self.isKnown(event.deliveryID, database) }
    }
  }

  static func isKnown(_ deliveryID: String, _ database: Database) throws -> Bool {
    try Row.fetchOne(
      database, sql: "SELECT 1 FROM delivery WHERE delivery_id = ?", arguments: [deliveryID]) != nil
  }

  // MARK: Where polling has come to

  /// The last answer's ETag, empty where it had none; nil for a source that was never read to its end.
  package func pollMark(of source: String) async throws -> String? {
    try await store.read { database in
      try String.fetchOne(
        database, sql: "SELECT value FROM setting WHERE name = ?", arguments: [Self.markName(source)])
    }
  }

  func keepPollMark(_ mark: String, of source: String) async throws {
    try await store.write { database in
      try database.run("INSERT OR REPLACE INTO setting VALUES (?, ?)", [Self.markName(source), mark])
    }
  }

  static func markName(_ source: String) -> String { "polled \(source.lowercased())" }

  /// Events that have not become music, the oldest first. What cannot be read is put aside, so that it is in nobody's
  /// way.
  package func uncomposed(limit: Int = RouterLimits.composedPerRead) async throws -> [LoggedEvent] {
    try await store.write { database in
      while true {
        let rows = try Row.fetchAll(
          database,
          sql: """
            SELECT repository_id, number, event FROM event WHERE parameters IS NULL
            ORDER BY received_ms, number LIMIT ?
            """, arguments: [limit])
        var unreadable: [Unreadable] = []
        let events = rows.compactMap { row -> LoggedEvent? in
          if let event: RepositoryEvent = JSON.value(row["event"]) {
            return LoggedEvent(number: row["number"], event: event)
          }
          unreadable.append(
            Unreadable(
              sessionID: row["repository_id"], place: "event \(row["number"] as Int)", content: row["event"],
              removal: "DELETE FROM event WHERE repository_id = ? AND 'event ' || number = ?"))
          return nil
        }
        try StateRows.putAside(unreadable, database)
        if !events.isEmpty || unreadable.isEmpty { return events }
      }
    }
  }

  package func history(of repository: SessionID) async throws -> MusicHistory {
    try await store.read { database in try Self.history(of: repository, database) }
  }

  static func history(of repository: SessionID, _ database: Database) throws -> MusicHistory {
    let json = try String.fetchOne(
      database, sql: "SELECT history FROM repository WHERE repository_id = ?",
      arguments: [repository.description])
    return JSON.value(json) ?? MusicHistory()
  }

  /// Writes down what an event has become.
  package func save(_ composed: Composed, history: MusicHistory) async throws {
    try await store.write { database in try Self.save(composed, history, database) }
  }

  static func save(_ composed: Composed, _ history: MusicHistory, _ database: Database) throws {
    let id = composed.event.repositoryID.description
    try database.run(
      "UPDATE event SET parameters = ?, is_silent = ?, score = ? WHERE repository_id = ? AND number = ?",
      [
        JSON.text(composed.parameters), composed.score == nil, composed.score.map(JSON.text), id,
        composed.number,
      ])
    try database.run(
      "UPDATE repository SET history = ?, last_played = ? WHERE repository_id = ?",
      [JSON.text(history), composed.number, id])
    try database.run(
      "UPDATE event SET score = NULL WHERE repository_id = ? AND number <= ? AND score IS NOT NULL",
      [id, composed.number - RouterLimits.maximumScoresPerRepository])
  }

  /// Takes off the disk what is too old or too much.
  package func sweep() async throws {
    try await store.write { [clock] database in
      let now = clock.milliseconds()
      try database.run("DELETE FROM event WHERE kept_ms < ?", [now - RouterLimits.eventMilliseconds])
      try Self.forgetDeliveries(now, database)
      try database.run(
        """
        DELETE FROM delivery WHERE kept_ms <= (
          SELECT kept_ms FROM delivery ORDER BY kept_ms DESC LIMIT 1 OFFSET ?)
        """, [RouterLimits.maximumDeliveries])
      try RepositoryEviction(database).dropScores()
    }
  }

  static func forgetDeliveries(_ now: Int, _ database: Database) throws {
    try database.run("DELETE FROM delivery WHERE kept_ms < ?", [now - RouterLimits.deliveryMilliseconds])
  }

  // MARK: Repositories

  /// All of them; called before anything else asks.
  package func repositories() throws -> [Repository] {
    try store.readNow { database in
      try Row.fetchAll(database, sql: "SELECT * FROM repository").compactMap(Self.repository)
    }
  }

  static func repository(_ id: SessionID, _ database: Database) throws -> Repository? {
    try Row.fetchOne(
      database, sql: "SELECT * FROM repository WHERE repository_id = ?", arguments: [id.description]
    ).flatMap(repository)
  }

  static func creator(of id: SessionID, _ database: Database) throws -> ClientID? {
    try String.fetchOne(
      database, sql: "SELECT creator FROM repository WHERE repository_id = ?", arguments: [id.description]
    ).map { ClientID(kept: $0) }
  }

  private static func repository(_ row: Row) -> Repository? {
    guard let id = try? SessionID(row["repository_id"] as String) else { return nil }
    return Repository(
      id: id, name: row["name"], language: row["language"], lastNumber: row["last_number"],
      lastComposed: row["last_played"], lastEventMilliseconds: row["last_event_ms"])
  }
}

extension Database {
  func run(_ sql: String, _ arguments: StatementArguments = []) throws {
    try cachedStatement(sql: sql).execute(arguments: arguments)
  }
}
