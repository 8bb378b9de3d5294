import WireProtocol

/// What is kept of a session besides the rows of its queue: one row, written at every change.
package struct SessionRecord: Sendable, Equatable {
  package var id: SessionID
  package var volume = 1.0
  package var loop = LoopMode.off
  package var bitrateKilobits: Int?
  package var current: QueueEntry?
  /// The highest number an entry has had, and a track of the history.
  package var lastID = 0
  package var lastPlayedNumber = 0
  /// What plays or is about to; nil while idle.
  package var playing: PlayRequest?
  /// Whether the engine has begun with it.
  package var hasBegun = false
  package var prepared: PreparedPlay?
  package var positionMilliseconds = 0
  /// When it was last changed: milliseconds since 1970.
  package var touchedMilliseconds = 0

  package init(id: SessionID) {
    self.id = id
  }
}

/// A session as it was kept.
package struct SavedSession: Sendable {
  package var record: SessionRecord
  package var queue: TrackQueue
}

/// Everything that was kept.
package struct SavedState: Sendable {
  package var sessions: [SavedSession] = []
  /// The oldest first.
  package var answers: [KeptAnswer] = []
  /// When the engine that was connected last had started.
  package var engineStartedAtMilliseconds: Int?
}

/// What one transaction writes, in this order.
package struct StateBatch: Sendable {
  /// Sessions whose rows are to be gone, before anything is written.
  package var cleared: Set<SessionID> = []
  package var changes: [(session: SessionID, change: TrackQueue.Change)] = []
  package var records: [SessionRecord] = []
  package var positions: [(session: SessionID, milliseconds: Int)] = []
  package var engineStartedAtMilliseconds: Int?
  package var answers: [KeptAnswer] = []
  /// Answers with lower numbers are to be gone.
  package var oldestAnswer = 0

  package init() {}

  package var isEmpty: Bool {
    cleared.isEmpty && changes.isEmpty && records.isEmpty && positions.isEmpty
      && engineStartedAtMilliseconds == nil && answers.isEmpty
  }
}
