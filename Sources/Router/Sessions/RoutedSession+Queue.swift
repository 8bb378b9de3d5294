import NIOCore

/// Something that needs a session's whole queue, and waits for it to be read.
struct DeferredStep {
  /// Nil for what the engine or the Router itself has to do there, which is never refused.
  var client: ClientID?
  /// Told why where the queue could not be read.
  var run: (RequestError?) -> Void
}

/// Where a session's queue is: in memory while it is used, else on disk alone.
extension RoutedSession {
  /// How much there is of it, wherever it is.
  var rows: StoredRows { storedRows ?? StoredRows(queue) }

  /// As clients see it. Of a queue that is on disk, the numbers alone.
  func queueView(_ page: QueuePage = QueuePage()) -> QueueView {
    var view = queue.view(page)
    view.total = rows.waitingCount
    view.historyTotal = rows.historyCount
    return view
  }

  /// Takes the queue that was read.
  func load(_ loaded: TrackQueue) {
    storedRows = nil
    queue = loaded
    usedAt = .now()
  }

  /// Leaves the queue to the disk, where all of it is.
  func unload() {
    let rows = StoredRows(queue)
    queue = queue.withoutRows
    storedRows = rows.isEmpty ? nil : rows
  }
}
