/// The queue as clients see it: what plays, a page of what waits, and how it goes on.
package struct QueueView: Codable, Sendable, Equatable {
  package var current: QueueEntry?
  package var tracks: [QueueEntry]
  /// The first of `tracks`, counted from the head of what waits.
  package var offset: Int
  /// All that wait.
  package var total: Int
  package var historyTotal: Int
  package var loop: LoopMode
  /// What the queue's tracks are encoded with, in kbit/s; nil for the engine's own.
  package var bitrateKilobits: Int?
  /// The entries that the command has made.
  package var added: [String]?

  enum CodingKeys: String, CodingKey {
    case current, tracks, offset, total, loop, added
    case historyTotal = "history_total"
    case bitrateKilobits = "bitrate_kbps"
  }
}

/// A part of what waits or has played.
package struct QueuePage: Sendable, Equatable {
  package var offset: Int
  package var limit: Int

  package init(offset: Int = 0, limit: Int = RouterLimits.maximumQueuePage) {
    self.offset = offset
    self.limit = limit
  }
}

/// What has played, the newest first.
package struct HistoryView: Codable, Sendable, Equatable {
  package var tracks: [QueueEntry]
  package var total: Int
}

extension TrackQueue {
  package func view(_ page: QueuePage = QueuePage()) -> QueueView {
    QueueView(
      current: current, tracks: waiting.dropFirst(page.offset).prefix(page.limit).map(\.entry),
      offset: page.offset, total: waiting.count, historyTotal: history.count, loop: loop,
      bitrateKilobits: bitrateKilobits)
  }

  package func historyView(limit: Int) -> HistoryView {
    HistoryView(tracks: history.suffix(limit).reversed(), total: history.count)
  }
}
