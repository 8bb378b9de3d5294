import NIOCore
import WireProtocol

/// Sessions that this Router takes over from others, and gives up to them.
extension StateWriter {
  /// Gives up a session that another Router has claimed: it is no longer written, and the archive is left alone.
  package func relinquish(_ session: RoutedSession) {
    session.isForgotten = true
    drop([session.id])
    write()
  }

  /// Stops writing sessions that other Routers have claimed.
  func drop(_ ids: Set<SessionID>) {
    batch = batch.without(ids)
    if let batch = current?.batch { current?.batch = batch.without(ids) }
    tell(context.drop(ids) + (current?.context.drop(ids) ?? []), .overtaken)
  }

  /// Takes a session over from the archive, as `SessionImport`.
  ///
  /// - Returns: its record and answers, to be restored; nil where it has no stored state.
  package func importSession(
    _ id: SessionID
  ) -> EventLoopFuture<(record: SessionRecord, answers: [StoredAnswer])?> {
    let promise = eventLoop.makePromise(of: (record: SessionRecord, answers: [StoredAnswer])?.self)
    guard let archive else {
      promise.succeed(nil)
      return promise.futureResult
    }
    let take = SessionImport(from: archive, into: store)
    let begin = {
      _ = promise.completeWithTask {
        try await take(id).map { (record: $0.record, answers: $0.answers) }
      }
    }
    // Earlier deletions must not remove the imported rows, and earlier writes must not overwrite them.
    batch.lost.remove(id)
    if batch.cleared.contains(id) { write(isRetry: true) }
    if current == nil { begin() } else { afterwards.append(begin) }
    return promise.futureResult
  }
}
