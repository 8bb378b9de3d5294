import Foundation
import GRDB
import WireProtocol

/// The Router's memory across starts: one SQLite file, written on a thread of GRDB's own.
///
/// What is committed survives the death of the process at any moment (write-ahead log; `synchronous = NORMAL`
/// gives up at most the last moments at a loss of power, and never the file).
package final class StateStore: Sendable {
  /// Why the state cannot be used, in words for the operator.
  package struct OpenError: Error, CustomStringConvertible {
    package let description: String
  }

  /// The file is no longer at its place.
  private struct GoneError: Error, CustomStringConvertible {
    let description: String
  }

  private let database: DatabaseQueue
  private let path: String
  /// Of the file that was opened.
  private let fileNumber: UInt64?

  /// Opens the file below the folder, or makes both.
  package init(directory: String) throws(OpenError) {
    path = directory + "/router.sqlite"
    do {
      try FileManager.default.createDirectory(
        atPath: directory, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
      var configuration = Configuration()
      configuration.journalMode = .wal
      configuration.prepareDatabase { database in
        // One Router alone has it: a second would play every queue twice.
        try database.execute(sql: "PRAGMA locking_mode = EXCLUSIVE")
        try database.execute(sql: "PRAGMA synchronous = NORMAL")
      }
      database = try DatabaseQueue(path: path, configuration: configuration)
      try StateSchema.migrate(database)
      fileNumber = Self.fileNumber(of: path)
    } catch {
      throw OpenError(description: Self.words(for: error, directory: directory, path: path))
    }
  }

  private static func words(for error: any Error, directory: String, path: String) -> String {
    switch (error as? DatabaseError)?.resultCode {
    case .SQLITE_BUSY?, .SQLITE_LOCKED?:
      "another Router uses \(directory); stop it, or give this one a folder of its own with --state"
    case .SQLITE_CORRUPT?, .SQLITE_NOTADB?:
      "\(path) is damaged (\(error)); put a copy back, or move it away to begin with empty queues"
    default:
      "the state cannot be kept in \(directory): \(error); make it writable, or choose another with --state"
    }
  }

  package func load() throws -> SavedState {
    try database.read { database in
      var state = SavedState()
      state.engineStartedAtMilliseconds = try Int.fetchOne(
        database, sql: "SELECT value FROM setting WHERE name = 'engine_started_ms'")
      state.answers = try Row.fetchAll(database, sql: "SELECT * FROM answer ORDER BY number")
        .compactMap(Self.answer)
      let rows = try Row.fetchAll(database, sql: "SELECT * FROM session")
      for row in rows {
        guard let record = Self.record(row) else { continue }
        state.sessions.append(SavedSession(record: record, queue: try Self.queue(record, database)))
      }
      return state
    }
  }

  /// Writes a batch as one transaction.
  ///
  /// - Parameter completion: called on GRDB's thread.
  package func write(_ batch: StateBatch, completion: @escaping @Sendable (Result<Void, any Error>) -> Void) {
    database.asyncWrite { [path, fileNumber] database in
      try Self.checkPlace(of: path, fileNumber)
      for id in batch.cleared {
        for table in ["waiting", "played", "session"] {
          try Self.run("DELETE FROM \(table) WHERE session_id = ?", [id.description], database)
        }
      }
      for (id, change) in batch.changes { try Self.write(change, of: id.description, database) }
      for record in batch.records { try Self.write(record, database) }
      for (id, milliseconds) in batch.positions {
        try Self.run(
          "UPDATE session SET position_ms = ? WHERE session_id = ?", [milliseconds, id.description], database)
      }
      if let milliseconds = batch.engineStartedAtMilliseconds {
        try Self.run("REPLACE INTO setting VALUES ('engine_started_ms', ?)", [milliseconds], database)
      }
      try Self.write(batch.answers, oldest: batch.oldestAnswer, database)
    } completion: { _, result in
      completion(result)
    }
  }

  /// Runs one transaction in its turn with the others.
  func write<Result: Sendable>(
    _ transaction: @escaping @Sendable (Database) throws -> Result
  ) async throws -> Result {
    try await database.write { [path, fileNumber] database in
      try Self.checkPlace(of: path, fileNumber)
      return try transaction(database)
    }
  }

  func read<Result: Sendable>(
    _ look: @escaping @Sendable (Database) throws -> Result
  ) async throws -> Result {
    try await database.read(look)
  }

  /// Before anything else asks.
  func readNow<Result: Sendable>(_ look: (Database) throws -> Result) throws -> Result {
    try database.read(look)
  }

  /// Waits until everything is written, and lets go of the file.
  package func close() throws {
    try database.close()
  }

  /// A file that was deleted can be written for ever, and is read by nobody.
  private static func checkPlace(of path: String, _ opened: UInt64?) throws(GoneError) {
    guard fileNumber(of: path) == opened else {
      throw GoneError(description: "\(path) was deleted or replaced; put it back, or start the Router anew")
    }
  }

  private static func fileNumber(of path: String) -> UInt64? {
    var status = stat()
    return stat(path, &status) == 0 ? UInt64(status.st_ino) : nil
  }

  // MARK: Rows

  private static func run(_ sql: String, _ arguments: StatementArguments, _ database: Database) throws {
    try database.cachedStatement(sql: sql).execute(arguments: arguments)
  }

  private static func write(_ change: TrackQueue.Change, of id: String, _ database: Database) throws {
    switch change {
    case .waits(let entry, let rank):
      try run("REPLACE INTO waiting VALUES (?, ?, ?, ?)", [id, entry.id, rank, JSON.text(entry)], database)
    case .moved(let entry, let rank):
      try run(
        "UPDATE waiting SET rank = ? WHERE session_id = ? AND entry_id = ?", [rank, id, entry], database)
    case .left(let entry):
      try run("DELETE FROM waiting WHERE session_id = ? AND entry_id = ?", [id, entry], database)
    case .leftAll: try run("DELETE FROM waiting WHERE session_id = ?", [id], database)
    case .played(let entry, let number):
      try run("REPLACE INTO played VALUES (?, ?, ?)", [id, number, JSON.text(entry)], database)
    case .forgotten(let number):
      try run("DELETE FROM played WHERE session_id = ? AND number = ?", [id, number], database)
    }
  }

  private static func write(_ record: SessionRecord, _ database: Database) throws {
    try run(
      "REPLACE INTO session VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
      [
        record.id.description, record.volume, record.loop.rawValue, record.bitrateKilobits,
        record.current.map(JSON.text), record.lastID, record.lastPlayedNumber, record.playing.map(JSON.text),
        record.hasBegun, record.prepared.map(JSON.text), record.positionMilliseconds,
        record.touchedMilliseconds,
      ], database)
  }

  /// A session whose name cannot be read is none of ours.
  private static func record(_ row: Row) -> SessionRecord? {
    guard let id = try? SessionID(row["session_id"] as String) else { return nil }
    var record = SessionRecord(id: id)
    record.volume = row["volume"]
    record.loop = LoopMode(rawValue: row["loop"]) ?? .off
    record.bitrateKilobits = row["bitrate_kbps"]
    record.current = JSON.value(row["current"])
    record.lastID = row["last_id"]
    record.lastPlayedNumber = row["last_played"]
    record.playing = JSON.value(row["playing"])
    record.hasBegun = row["has_begun"]
    record.prepared = JSON.value(row["prepared"])
    record.positionMilliseconds = row["position_ms"]
    record.touchedMilliseconds = row["touched_ms"]
    return record
  }

  private static func queue(_ record: SessionRecord, _ database: Database) throws -> TrackQueue {
    let id = record.id.description
    let waiting = try Row.fetchAll(
      database, sql: "SELECT entry, rank FROM waiting WHERE session_id = ? ORDER BY rank", arguments: [id])
    let played = try String.fetchAll(
      database, sql: "SELECT entry FROM played WHERE session_id = ? ORDER BY number", arguments: [id])
    return TrackQueue(
      current: record.current,
      waiting: waiting.compactMap { row in
        JSON.value(row["entry"]).map { TrackQueue.Waiting(entry: $0, rank: row["rank"]) }
      },
      history: played.compactMap { JSON.value($0) }, lastPlayedNumber: record.lastPlayedNumber,
      loop: record.loop, bitrateKilobits: record.bitrateKilobits, lastID: record.lastID)
  }

  private static func write(_ answers: [KeptAnswer], oldest: Int, _ database: Database) throws {
    guard !answers.isEmpty else { return }
    for answer in answers {
      try run(
        "REPLACE INTO answer VALUES (?, ?, ?, ?, ?, ?)",
        [
          answer.number, answer.intent.sessionID.description, answer.intent.key.text, answer.fingerprint,
          String(decoding: answer.json, as: UTF8.self), answer.answeredAtMilliseconds,
        ], database)
    }
    try run("DELETE FROM answer WHERE number < ?", [oldest], database)
  }

  private static func answer(_ row: Row) -> KeptAnswer? {
    guard let id = try? SessionID(row["session_id"] as String),
      let key = try? IdempotencyKey(row["key"] as String)
    else { return nil }
    return KeptAnswer(
      intent: Intent(id, key), fingerprint: row["fingerprint"], json: Array((row["json"] as String).utf8),
      answeredAtMilliseconds: row["answered_ms"], number: row["number"])
  }
}
