import GRDB

extension CrashRecord {
  init(row: Row) {
    self.init(
      address: row["address"], weight: row["weight"], isLate: row["is_late"],
      passedTrials: row["passed_trials"], isOpen: row["is_open"], changedMilliseconds: row["changed_ms"],
      refusedUntilMilliseconds: row["refused_until_ms"])
  }

  /// - Parameter record: nil where nothing is kept of the address any more.
  static func write(_ record: CrashRecord?, of address: String, _ database: Database) throws {
    guard let record else {
      return try database.run(cached: "DELETE FROM crash WHERE address = ?", [address])
    }
    try database.run(
      cached: "REPLACE INTO crash VALUES (?, ?, ?, ?, ?, ?, ?)",
      [
        address, record.weight, record.isLate, record.passedTrials, record.isOpen, record.changedMilliseconds,
        record.refusedUntilMilliseconds,
      ])
  }
}
