import GRDB
import WireProtocol

/// What could not be read of what was kept: it stays on disk, in a table of its own.
package struct Unreadable: Sendable, Equatable {
  package var sessionID: String
  /// The table, and where in it.
  package var place: String
  package var content: String
  /// Takes the row away that had it.
  var removal: String?
}

/// A queue as it was kept, and what of it could not be read.
package struct LoadedQueue: Sendable {
  package var queue: TrackQueue
  package var unreadable: [Unreadable]
}

/// The rows of the Router's state, to and from what they are in memory.
enum StateRows {
  struct QueueRows: Sendable {
    var waiting: [(rank: Int64, id: String, entry: String)]
    var played: [(number: Int, entry: String)]
  }

  // MARK: Queues

  static func write(_ change: TrackQueue.Change, of id: String, _ database: Database) throws {
    switch change {
    case .waits(let entry, let rank):
      try database.run(
        cached: "REPLACE INTO waiting VALUES (?, ?, ?, ?)", [id, entry.id, rank, JSON.text(entry)])
    case .moved(let entry, let rank): try move(entry, rank, of: id, database)
    case .dealt(let entries):
      for (place, entry) in entries.enumerated() {
        try move(entry, TrackQueue.dealtRank(at: place), of: id, database)
      }
    case .left(let entry):
      try database.run(cached: "DELETE FROM waiting WHERE session_id = ? AND entry_id = ?", [id, entry])
    case .leftAll: try database.run(cached: "DELETE FROM waiting WHERE session_id = ?", [id])
    case .played(let entry, let number):
      try database.run(cached: "REPLACE INTO played VALUES (?, ?, ?)", [id, number, JSON.text(entry)])
    case .forgotten(let number):
      try database.run(cached: "DELETE FROM played WHERE session_id = ? AND number = ?", [id, number])
    }
  }

  private static func move(_ entry: String, _ rank: Int64, of id: String, _ database: Database) throws {
    try database.run(
      cached: "UPDATE waiting SET rank = ? WHERE session_id = ? AND entry_id = ?", [rank, id, entry])
  }

  static func queueRows(of id: SessionID, _ database: Database) throws -> QueueRows {
    let waiting = try Row.fetchAll(
      database, sql: "SELECT rank, entry_id, entry FROM waiting WHERE session_id = ? ORDER BY rank",
      arguments: [id.description])
    let played = try Row.fetchAll(
      database, sql: "SELECT number, entry FROM played WHERE session_id = ? ORDER BY number",
      arguments: [id.description])
    return QueueRows(
      waiting: waiting.map { (rank: $0[0], id: $0[1], entry: $0[2]) },
      played: played.map { (number: $0[0], entry: $0[1]) })
  }

  static func decode(_ rows: QueueRows, _ record: SessionRecord) -> LoadedQueue {
    let id = record.id.description
    var unreadable: [Unreadable] = []
    var waiting: [TrackQueue.Waiting] = []
    waiting.reserveCapacity(rows.waiting.count)
    for (row, entry) in zip(rows.waiting, JSON.values(rows.waiting.map(\.entry)) as [QueueEntry?]) {
      if let entry {
        waiting.append(TrackQueue.Waiting(entry: entry, rank: row.rank))
      } else {
        unreadable.append(
          Unreadable(
            sessionID: id, place: "waiting \(row.id)", content: row.entry,
            removal: "DELETE FROM waiting WHERE session_id = ? AND 'waiting ' || entry_id = ?"))
      }
    }
    var played: [QueueEntry] = []
    for (row, entry) in zip(rows.played, JSON.values(rows.played.map(\.entry)) as [QueueEntry?]) {
      if let entry {
        played.append(entry)
      } else {
        unreadable.append(
          Unreadable(
            sessionID: id, place: "played \(row.number)", content: row.entry,
            removal: "DELETE FROM played WHERE session_id = ? AND 'played ' || number = ?"))
      }
    }
    let queue = TrackQueue(
      current: record.current, waiting: waiting, history: played, lastPlayedNumber: record.lastPlayedNumber,
      loop: record.loop, bitrateKilobits: record.bitrateKilobits, lastID: record.lastID)
    return LoadedQueue(queue: queue, unreadable: unreadable)
  }

  static func putAside(_ unreadable: [Unreadable], _ database: Database) throws {
    for one in unreadable {
      try database.run(
        cached: "INSERT INTO unreadable (session_id, place, content) VALUES (?, ?, ?)",
        [one.sessionID, one.place, one.content])
      if let removal = one.removal { try database.run(cached: removal, [one.sessionID, one.place]) }
    }
  }

  // MARK: Sessions

  static func write(_ record: SessionRecord, _ database: Database) throws {
    try database.run(
      cached: """
        REPLACE INTO session (
          session_id, volume, loop, bitrate_kbps, current, last_id, last_played, playing, has_begun, prepared,
          position_ms, touched_ms, creator, waiting_count, history_count, row_bytes
        ) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
        """,
      [
        record.id.description, record.volume, record.loop.rawValue, record.bitrateKilobits,
        record.current.map(JSON.text), record.lastID, record.lastPlayedNumber, record.playing.map(JSON.text),
        record.hasBegun, record.prepared.map(JSON.text), record.positionMilliseconds,
        record.touchedMilliseconds, record.creator.description, record.rows.waitingCount,
        record.rows.historyCount, record.rows.byteCount,
      ])
  }

  /// A session whose name cannot be read is not from this Router.
  static func record(_ row: Row, _ unreadable: inout [Unreadable]) -> SessionRecord? {
    guard let id = try? SessionID(row["session_id"] as String) else { return nil }
    func value<Value: Decodable>(_ column: String) -> Value? {
      guard let text: String = row[column] else { return nil }
      if let value: Value = JSON.value(text) { return value }
      unreadable.append(
        Unreadable(
          sessionID: id.description, place: column, content: text,
          removal: "UPDATE session SET \(column) = NULL WHERE session_id = ? AND ? = '\(column)'"))
      return nil
    }
    var record = SessionRecord(id: id)
    record.volume = row["volume"]
    record.loop = LoopMode(rawValue: row["loop"]) ?? .off
    record.bitrateKilobits = row["bitrate_kbps"]
    record.current = value("current")
    record.lastID = row["last_id"]
    record.lastPlayedNumber = row["last_played"]
    record.playing = value("playing")
    record.hasBegun = row["has_begun"]
    record.prepared = value("prepared")
    record.positionMilliseconds = row["position_ms"]
    record.touchedMilliseconds = row["touched_ms"]
    record.creator = (row["creator"] as String?).map(ClientID.init(kept:)) ?? .router
    record.rows.waitingCount = row["waiting_count"]
    record.rows.historyCount = row["history_count"]
    record.rows.byteCount = row["row_bytes"]
    return record
  }

  // MARK: Answers

  static func write(_ answers: [StoredAnswer], forgotten: [Int], _ database: Database) throws {
    for answer in answers {
      try database.run(
        cached: "REPLACE INTO answer (number, session_id, key, fingerprint, json, answered_ms, client) "
          + "VALUES (?, ?, ?, ?, ?, ?, ?)",
        [
          answer.number, answer.intent.sessionID.description, answer.intent.key.text, answer.fingerprint,
          String(decoding: answer.json, as: UTF8.self), answer.answeredAtMilliseconds,
          answer.client.description,
        ])
    }
    for number in forgotten { try database.run(cached: "DELETE FROM answer WHERE number = ?", [number]) }
  }

  static func answer(_ row: Row) -> StoredAnswer? {
    guard let id = try? SessionID(row["session_id"] as String),
      let key = try? IdempotencyKey(row["key"] as String)
    else { return nil }
    return StoredAnswer(
      intent: Intent(id, key), fingerprint: row["fingerprint"], json: Array((row["json"] as String).utf8),
      answeredAtMilliseconds: row["answered_ms"], number: row["number"],
      client: (row["client"] as String?).map(ClientID.init(kept:)) ?? .router)
  }
}

extension Database {
  func run(cached sql: String, _ arguments: StatementArguments = []) throws {
    try cachedStatement(sql: sql).execute(arguments: arguments)
  }
}
