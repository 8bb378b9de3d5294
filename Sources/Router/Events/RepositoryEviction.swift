import GRDB
import WireProtocol

/// Which repositories and scores are stored. Where a client has too many, its own are evicted, and nobody else's.
struct RepositoryEviction {
  private static let router = ClientID.router.description

  private let database: Database

  init(_ database: Database) {
    self.database = database
  }

  /// Which repository is to make room for one more: the quietest of the same creator's, where that one has too many.
  ///
  /// - Parameter tester: whose test event it is of; nil for GitHub.
  /// - Throws: `too_many_sessions` where there is no room and none of its own to give way.
  func candidate(for tester: Grant?) throws -> SessionID? {
    guard let tester else {
      let count = try count("SELECT COUNT(*) FROM repository")
      return count < RouterLimits.maximumRepositories ? nil : try leastRecent(of: Self.router)
    }
    let creator = tester.client.description
    let own = try count("SELECT COUNT(*) FROM repository WHERE creator = ?", [creator])
    let tested = try count("SELECT COUNT(*) FROM repository WHERE creator <> ?", [Self.router])
    let all = try count("SELECT COUNT(*) FROM repository")
    let hasRoom = tested < RouterLimits.maximumTestRepositories && all < RouterLimits.maximumRepositories
    guard !hasRoom || own >= RouterLimits.testRepositoriesPerClient * tester.limitFactor else { return nil }
    if let candidate = try leastRecent(of: creator) { return candidate }
    throw RequestError(
      .tooManySessions,
      "the Router keeps \(all) repositories, \(tested) of them made by test events: it has room for "
        + "\(RouterLimits.maximumRepositories) and \(RouterLimits.maximumTestRepositories)",
      hint: "try it in a repository that is there already")
  }

  private func count(_ sql: String, _ arguments: StatementArguments = []) throws -> Int {
    try Int.fetchOne(database, sql: sql, arguments: arguments) ?? 0
  }

  private func leastRecent(of creator: String) throws -> SessionID? {
    let id = try String.fetchOne(
      database,
      sql: "SELECT repository_id FROM repository WHERE creator = ? ORDER BY last_event_ms LIMIT 1",
      arguments: [creator])
    return id.flatMap { try? SessionID($0) }
  }

  /// Deletes a repository and what happened in it.
  func evict(_ id: SessionID) throws {
    for table in ["event", "repository"] {
      try database.run("DELETE FROM \(table) WHERE repository_id = ?", [id.description])
    }
  }

  /// Takes the scores off the disk that are too many: the oldest of one client's, of all clients', of GitHub's.
  func dropScores() throws {
    try database.run(
      """
      UPDATE event SET score = NULL WHERE (repository_id, number) IN (
        SELECT repository_id, number FROM (
          SELECT repository_id, number, creator = :router AS is_signed,
            ROW_NUMBER() OVER (PARTITION BY creator ORDER BY received_ms DESC, number DESC) AS own_place,
            ROW_NUMBER() OVER (PARTITION BY creator = :router ORDER BY received_ms DESC, number DESC) AS place
          FROM event JOIN repository USING (repository_id) WHERE score IS NOT NULL)
        WHERE CASE WHEN is_signed THEN place > :signed ELSE place > :tested OR own_place > :own END)
      """,
      [
        "router": Self.router, "signed": RouterLimits.maximumScores,
        "tested": RouterLimits.maximumTestScores, "own": RouterLimits.testScoresPerClient,
      ])
  }
}
