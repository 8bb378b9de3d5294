import NIOCore
import WireProtocol

/// Sessions that come from other Routers, and go to them.
extension StateWriter {
  /// Lets go of a session that is another Router's now: nothing of it is written any more, and the archive stays as it is.
  package func lose(_ session: RoutedSession) {
    session.isForgotten = true
    drop([session.id])
    write()
  }

  /// Sessions are another Router's: nothing of them is written any more.
  func drop(_ ids: Set<SessionID>) {
    batch = batch.without(ids)
    if let current = underway { underway?.batch = current.batch.without(ids) }
    tell(cargo.drop(ids) + (underway?.cargo.drop(ids) ?? []), .overtaken)
  }

  /// Takes a session over from the archive, as `SessionImport`.
  ///
  /// - Returns: its record and answers, to be restored; nil where nothing is kept of it.
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
    // What came before is not to take what comes now off the disk, or to be written over it.
    batch.lost.remove(id)
    if batch.cleared.contains(id) { write(isRetry: true) }
    if underway == nil { begin() } else { afterwards.append(begin) }
    return promise.futureResult
  }
}
