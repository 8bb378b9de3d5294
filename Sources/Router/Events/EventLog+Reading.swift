import GRDB
import WireProtocol

/// What pages and streams ask of the log.
extension EventLog {
  /// The newest events that have become music, the newest first, and how many there are of them.
  ///
  /// - Parameter before: only those with a smaller number.
  package func page(
    of repository: SessionID, before: Int?, limit: Int
  ) async throws -> (events: [Composed], total: Int) {
    let (rows, total) = try await store.read { database in
      let id = repository.description
      let rows = try Row.fetchAll(
        database,
        sql: """
          SELECT number, event, parameters, score FROM event
          WHERE repository_id = ? AND parameters IS NOT NULL AND number < ? ORDER BY number DESC LIMIT ?
          """, arguments: [id, before ?? .max, limit]
      ).map(ComposedRow.init)
      let total =
        try Int.fetchOne(
          database,
          sql: "SELECT COUNT(*) FROM event WHERE repository_id = ? AND parameters IS NOT NULL",
          arguments: [id]) ?? 0
      return (rows, total)
    }
    // Outside of the turn: others wait to be written, and decoding takes ten times as long as reading.
    return (rows.compactMap(\.composed), total)
  }

  /// The first piece after a number that can still be heard.
  package func piece(of repository: SessionID, after number: Int) async throws -> GeneratedMusic? {
    try await store.read { database in
      let rows = try Row.fetchCursor(
        database,
        sql: """
          SELECT number, event, parameters, score FROM event
          WHERE repository_id = ? AND number > ? AND score IS NOT NULL ORDER BY number
          """, arguments: [repository.description, number])
      // One that cannot be read is passed over.
      while let row = try rows.next() {
        if let music = ComposedRow(row).composed?.music { return music }
      }
      return nil
    }
  }

  /// Whether music was made of events after that number which can be heard no longer.
  package func isGap(of repository: SessionID, after number: Int, before next: Int) async throws -> Bool {
    try await store.read { database in
      let row = try Row.fetchOne(
        database,
        sql: """
          SELECT COUNT(*) AS kept, SUM(score IS NULL AND NOT is_silent) AS gone
          FROM event WHERE repository_id = ? AND number > ? AND number < ? AND parameters IS NOT NULL
          """, arguments: [repository.description, number, next])
      let kept = row?["kept"] as Int? ?? 0
      return kept < next - number - 1 || (row?["gone"] as Int? ?? 0) > 0
    }
  }

  /// What became music within a time, the oldest first.
  ///
  /// - Parameter range: milliseconds since 1970.
  package func composed(
    in repository: SessionID, _ range: Range<Int>
  ) async throws -> [(event: RepositoryEvent, parameters: MusicalParameters)] {
    try await store.read { database in
      let rows = try Row.fetchAll(
        database,
        sql: """
          SELECT number, event, parameters, NULL AS score FROM event
          WHERE repository_id = ? AND parameters IS NOT NULL AND received_ms >= ? AND received_ms < ?
          ORDER BY received_ms, number LIMIT ?
          """,
        arguments: [
          repository.description, range.lowerBound, range.upperBound, RouterLimits.maximumEventsPerRepository,
        ])
      return rows.compactMap { ComposedRow($0).composed }.map { ($0.event, $0.parameters) }
    }
  }

  /// How many events and commits there were, in quarters of an hour.
  ///
  /// - Parameter start: of the first, in milliseconds since 1970.
  package func activity(of repository: SessionID, from start: Int) async throws -> [ActivityBin] {
    let width = RouterLimits.activityBinMilliseconds
    let counts = try await store.read { database in
      try Row.fetchAll(
        database,
        sql: """
          SELECT (received_ms - ?) / ? AS bin, COUNT(*) AS events, SUM(commits) AS commits FROM event
          WHERE repository_id = ? AND received_ms >= ? GROUP BY bin
          """, arguments: [start, width, repository.description, start]
      ).map { row in (bin: row["bin"] as Int, events: row["events"] as Int, commits: row["commits"] as Int) }
    }
    var bins = (0..<RouterLimits.activityBinCount).map { ActivityBin(startMilliseconds: start + $0 * width) }
    for count in counts where bins.indices.contains(count.bin) {
      bins[count.bin].events = count.events
      bins[count.bin].commits = count.commits
    }
    return bins
  }
}

/// An event that has become music, as it is on disk.
private struct ComposedRow: Sendable {
  private let number: Int
  private let event: String
  private let parameters: String
  private let score: String?

  init(_ row: Row) {
    number = row["number"]
    event = row["event"]
    parameters = row["parameters"]
    score = row["score"]
  }

  /// nil where it cannot be read.
  var composed: EventLog.Composed? {
    guard let event: RepositoryEvent = JSON.value(event),
      let parameters: MusicalParameters = JSON.value(parameters)
    else { return nil }
    return EventLog.Composed(number: number, event: event, parameters: parameters, score: JSON.value(score))
  }
}

/// A quarter of an hour in a repository.
package struct ActivityBin: Encodable, Sendable, Equatable {
  /// Since 1970.
  package var startMilliseconds: Int
  package var events = 0
  package var commits = 0

  enum CodingKeys: String, CodingKey {
    case events, commits
    case startMilliseconds = "start_ms"
  }
}
