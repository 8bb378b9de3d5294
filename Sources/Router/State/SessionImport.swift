import WireProtocol

/// Takes sessions over from the archive: what another Router has kept of one is on this one's disk then, where its queue is
/// read from.
package struct SessionImport: Sendable {
  let archive: SessionArchive
  let store: StateStore

  package init(from archive: SessionArchive, into store: StateStore) {
    self.archive = archive
    self.store = store
  }

  /// Reads a session from the archive, puts it on the disk in place of what was there, and writes it from now on.
  ///
  /// - Returns: nil where the archive has nothing of it.
  package func callAsFunction(_ id: SessionID) async throws -> ArchivedContent? {
    let content = try await archive.claim(id)
    try await store.replace(id, with: content)
    if let content { await archive.take(content) } else { await archive.forget(id) }
    return content
  }
}

extension StateStore {
  /// Puts a session in place of what is kept of it, in one transaction.
  ///
  /// - Parameter content: nil where nothing is to be kept.
  package func replace(_ id: SessionID, with content: ArchivedContent?) async throws {
    try await write { database in
      for table in ["waiting", "played", "session", "answer"] {
        try database.run(cached: "DELETE FROM \(table) WHERE session_id = ?", [id.description])
      }
      guard let content else { return }
      for change in content.rows { try StateRows.write(change, of: id.description, database) }
      try StateRows.write(content.record, database)
      try StateRows.write(content.answers, forgotten: [], database)
      try StateRows.putAside(content.unreadable, database)
    }
  }
}

extension ArchivedContent {
  fileprivate var rows: [TrackQueue.Change] {
    let first = record.lastPlayedNumber - history.count + 1
    return waiting.map { .waits($0.entry, rank: $0.rank) }
      + history.enumerated().map { .played($0.element, number: first + $0.offset) }
  }
}
