import WireProtocol

/// What is kept of sessions where every Router finds it.
protocol SessionArchiving: Sendable {
  /// Brings what is kept of a session to this Router's disk.
  ///
  /// - Returns: the session's own row and the answers to repeated commands; nil where nothing is kept of it.
  func importSession(_ id: SessionID) async throws -> (SessionRecord, [StoredAnswer])?
}
