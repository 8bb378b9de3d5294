import Foundation
import GRDB

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
  private let decoding = DispatchQueue(label: "antiphon.state.decoding")
  private let path: String
  /// The inode of the file that was opened.
  private let fileNumber: UInt64?

  /// Opens the file below the folder, or makes both.
  ///
  /// - Parameter name: of the file, without its ending.
  package init(directory: String, name: String = "router") throws(OpenError) {
    path = "\(directory)/\(name).sqlite"
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

  /// Empties it of sessions and repositories: where there are several Routers, what is kept of them is at NATS, and this
  /// disk has what was read of it since the start.
  package func removeShared() throws {
    try database.write { database in
      for table in ["waiting", "played", "session", "answer", "event", "repository", "delivery"] {
        try database.execute(sql: "DELETE FROM \(table)")
      }
      try database.execute(sql: "DELETE FROM setting WHERE name LIKE 'polled %'")
    }
  }

  /// Reads what is needed at the start: of the queues nothing but the current entries.
  package func load() throws -> SavedState {
    try database.write { database in
      var state = SavedState()
      state.engineStartedAtMilliseconds = try Int.fetchOne(
        database, sql: "SELECT value FROM setting WHERE name = 'engine_started_ms'")
      state.crashes = try Row.fetchAll(database, sql: "SELECT * FROM crash").map(CrashRecord.init(row:))
      state.clock = CumulativeUptimeClock(
        base: try Int.fetchOne(database, sql: "SELECT value FROM setting WHERE name = 'running_ms'") ?? 0)
      state.answers = try Row.fetchAll(database, sql: "SELECT * FROM answer ORDER BY number")
        .compactMap(StateRows.answer)
      for row in try Row.fetchAll(database, sql: "SELECT * FROM session") {
        guard let record = StateRows.record(row, &state.unreadable) else { continue }
        state.sessions.append(record)
      }
      try StateRows.putAside(state.unreadable, database)
      return state
    }
  }

  /// Reads a queue's other rows. What cannot be read is put aside first, so that nothing is written over it.
  ///
  /// - Parameter completion: called on a thread of the store's.
  package func loadQueue(
    of record: SessionRecord,
    completion: @escaping @Sendable (Result<LoadedQueue, any Error>) -> Void
  ) {
    // Behind every write before it: the queue is as it was kept last.
    database.asyncRead { [decoding] access in
      let rows = Result { try StateRows.queueRows(of: record.id, access.get()) }
      // Decoding takes ten times as long as reading, and others wait to be written.
      decoding.async { [self] in
        do {
          let loaded = StateRows.decode(try rows.get(), record)
          guard !loaded.unreadable.isEmpty else { return completion(.success(loaded)) }
          database.asyncWrite { database in
            try StateRows.putAside(loaded.unreadable, database)
          } completion: { _, result in
            completion(result.map { loaded })
          }
        } catch {
          completion(.failure(error))
        }
      }
    }
  }

  /// Writes a batch as one transaction.
  ///
  /// - Parameter completion: called on GRDB's thread.
  package func write(_ batch: StateBatch, completion: @escaping @Sendable (Result<Void, any Error>) -> Void) {
    database.asyncWrite { [path, fileNumber] database in
      try Self.checkPlace(of: path, fileNumber)
      for ids in [batch.lost, batch.cleared] {
        for id in ids {
          for table in ["waiting", "played", "session"] {
            try database.run(cached: "DELETE FROM \(table) WHERE session_id = ?", [id.description])
          }
        }
      }
      for (id, changes) in batch.changes {
        for change in changes.list { try StateRows.write(change, of: id.description, database) }
      }
      for record in batch.records { try StateRows.write(record, database) }
      for (id, milliseconds) in batch.positions {
        try database.run(
          cached: "UPDATE session SET position_ms = ? WHERE session_id = ?", [milliseconds, id.description])
      }
      if let milliseconds = batch.engineStartedAtMilliseconds {
        try database.run(cached: "REPLACE INTO setting VALUES ('engine_started_ms', ?)", [milliseconds])
      }
      for (address, record) in batch.crashes { try CrashRecord.write(record, of: address, database) }
      try database.run(cached: "REPLACE INTO setting VALUES ('running_ms', ?)", [batch.runningMilliseconds])
      try StateRows.write(batch.answers, forgotten: batch.forgottenAnswers, database)
    } completion: { _, result in
      completion(result)
    }
  }

  /// Runs one transaction in its turn with the others.
  package func write<Result: Sendable>(
    _ transaction: @escaping @Sendable (Database) throws -> Result
  ) async throws -> Result {
    try await database.write { [path, fileNumber] database in
      try Self.checkPlace(of: path, fileNumber)
      return try transaction(database)
    }
  }

  package func read<Result: Sendable>(
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

  /// A file that was deleted can be written forever, and is read by nobody.
  private static func checkPlace(of path: String, _ opened: UInt64?) throws(GoneError) {
    guard fileNumber(of: path) == opened else {
      throw GoneError(description: "\(path) was deleted or replaced; put it back, or restart the Router")
    }
  }

  private static func fileNumber(of path: String) -> UInt64? {
    var status = stat()
    return stat(path, &status) == 0 ? UInt64(status.st_ino) : nil
  }
}
