import GRDB
import ServiceSupport
import WireProtocol

/// The log of one of several Routers: what is in it is what JetStream has, in JetStream's order.
extension EventLog {
  /// A delivery as it is to be written, and what the music of before it was; nil for one that has come already.
  ///
  /// - Throws: as `append`.
  func draft(
    _ event: RepositoryEvent, testOf tester: Grant?
  ) async throws -> (draft: EventDraft, history: MusicHistory)? {
    try await store.write { [clock] database in
      guard let draft = try EventDraft(event, testOf: tester, now: clock.milliseconds(), database) else {
        return nil
      }
      return (draft, try Self.history(of: event.repositoryID, database))
    }
  }

  /// Writes down what a Router has written at JetStream.
  ///
  /// - Parameter mayBeToldAgain: whether it may have been written down, and be too old to be kept by now.
  /// - Returns: its repository, with it; nil where it was written down before.
  func apply(_ shared: SharedEvent, mayBeToldAgain: Bool) async throws -> Repository? {
    try await store.write { [clock] database in
      let id = shared.event.repositoryID
      let known = try Self.repository(id, database)
      if let known, known.lastNumber >= shared.number {
        let written = try String.fetchOne(
          database, sql: "SELECT event FROM event WHERE repository_id = ? AND number = ?",
          arguments: [id.description, shared.number])
        let isWritten = written.map { $0 == JSON.text(shared.event) } ?? mayBeToldAgain
        guard !isWritten else { return nil }
        // Its events were lost at JetStream, and are counted anew.
        try RepositoryEviction(database).evict(id)
      }
      let age = max(0, Int(Grant.nowMilliseconds) - shared.writtenMilliseconds)
      let draft = shared.draft(lastEventMilliseconds: known?.lastEventMilliseconds ?? 0)
      try draft.write(keptMilliseconds: clock.milliseconds() - age, database)
      try Self.save(shared.composed, shared.history, database)
      return draft.repository
    }
  }

  /// Another Router has read a source to its end: what comes next is heard.
  func applyPollMark(of source: String) async throws {
    try await store.write { database in
      try database.run("INSERT OR IGNORE INTO setting VALUES (?, '')", [Self.markName(source)])
    }
  }
}
