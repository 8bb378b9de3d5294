import GRDB
import ServiceSupport
import WireProtocol

/// The log of one of several Routers: it follows JetStream's events, in JetStream's order.
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

  /// Saves an event that a Router has written to JetStream.
  ///
  /// - Parameter mayBeRedelivered: whether it may have been saved before, and deleted since for its age.
  /// - Returns: its repository, with it; nil where it was saved before.
  func apply(_ shared: SharedEvent, mayBeRedelivered: Bool) async throws -> Repository? {
    try await store.write { [clock] database in
      let id = shared.event.repositoryID
      let known = try Self.repository(id, database)
      let age = max(0, Int(Grant.nowMilliseconds) - shared.writtenMilliseconds)
      var lastEventMilliseconds = known?.lastEventMilliseconds ?? 0
      if let known, known.lastNumber >= shared.number {
        let written = try String.fetchOne(
          database, sql: "SELECT event FROM event WHERE repository_id = ? AND number = ?",
          arguments: [id.description, shared.number])
        // A missing row of this age has been swept.
        let isWritten =
          written.map { $0 == JSON.text(shared.event) }
          ?? (mayBeRedelivered || age >= RouterLimits.eventMilliseconds)
        guard !isWritten else { return nil }
        // JetStream has lost this number and those after it, and gives them to other events.
        try database.run(
          "DELETE FROM event WHERE repository_id = ? AND number >= ?", [id.description, shared.number])
        lastEventMilliseconds =
          try Int.fetchOne(
            database, sql: "SELECT MAX(received_ms) FROM event WHERE repository_id = ?",
            arguments: [id.description]) ?? 0
      }
      let draft = shared.draft(lastEventMilliseconds: lastEventMilliseconds)
      try draft.write(keptMilliseconds: clock.milliseconds() - age, database)
      try Self.save(shared.composed, shared.history, database)
      return draft.repository
    }
  }

  /// Another Router has read a source to its end: later events of it are played.
  func applyPollMark(of source: String) async throws {
    try await store.write { database in
      try database.run("INSERT OR IGNORE INTO setting VALUES (?, '')", [Self.markName(source)])
    }
  }
}
