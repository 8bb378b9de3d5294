import GRDB
import WireProtocol

/// A delivery as it is to be written: the event with its number, and its repository with the event in it.
struct EventDraft: Sendable {
  var logged: LoggedEvent
  var repository: EventLog.Repository
  /// Who made the repository: `ClientID.router` once GitHub has told of it.
  var creator: ClientID
  /// Whether the delivery's ID is kept: a test event's is our own, and takes no other delivery's place.
  var isTest: Bool
  /// The repository that is to make room for this one's.
  var evicted: SessionID?
}

extension EventDraft {
  /// nil where the delivery came within the last 24 hours already.
  ///
  /// - Parameters:
  ///   - tester: who sends a test event; nil for GitHub.
  ///   - now: the running time.
  /// - Throws: `too_many_sessions` where a test event's repository finds no room.
  init?(_ event: RepositoryEvent, testOf tester: Grant?, now: Int, _ database: Database) throws {
    let id = event.repositoryID
    try EventLog.forgetDeliveries(now, database)
    if tester == nil, try EventLog.isKnown(event.deliveryID, database) { return nil }
    let known = try EventLog.repository(id, database)
    logged = LoggedEvent(number: (known?.lastNumber ?? 0) + 1, event: event)
    repository = EventLog.Repository(
      // A test event gives nothing another name.
      id: id, name: tester == nil ? event.repositoryName : known?.name ?? event.repositoryName,
      language: event.language ?? known?.language, lastNumber: logged.number,
      lastComposed: known?.lastComposed ?? 0,
      // Deliveries overtake one another and clocks are set back: what is written later comes later.
      lastEventMilliseconds: max(event.receivedMilliseconds, known?.lastEventMilliseconds ?? 0))
    // What GitHub has told of once is GitHub's, no matter who tried it out before.
    creator =
      tester == nil ? .router : try EventLog.creator(of: id, database) ?? tester?.client ?? .router
    isTest = tester != nil
    evicted = known == nil ? try RepositoryEviction(database).candidate(for: tester) : nil
  }

  /// - Parameter keptMilliseconds: the running time at which it came.
  func write(keptMilliseconds: Int, _ database: Database) throws {
    let (id, number, event) = (repository.id.description, logged.number, logged.event)
    let received = repository.lastEventMilliseconds
    if let evicted { try RepositoryEviction(database).evict(evicted) }
    if !isTest {
      try database.run(
        "INSERT OR IGNORE INTO delivery VALUES (?, ?, ?)", [event.deliveryID, received, keptMilliseconds])
    }
    try database.run(
      """
      INSERT INTO repository VALUES (?, ?, ?, ?, ?, ?, NULL, ?) ON CONFLICT (repository_id) DO UPDATE SET
        name = excluded.name, language = excluded.language, last_number = excluded.last_number,
        last_event_ms = excluded.last_event_ms, creator = excluded.creator
      """,
      [
        id, repository.name, repository.language, number, repository.lastComposed, received,
        creator.description,
      ])
    try database.run(
      "INSERT INTO event VALUES (?, ?, ?, ?, ?, NULL, FALSE, NULL, ?)",
      [id, number, received, event.commits, JSON.text(event), keptMilliseconds])
    try database.run(
      "DELETE FROM event WHERE repository_id = ? AND number <= ?",
      [id, number - RouterLimits.maximumEventsPerRepository])
  }
}
