import NATS

/// Erases rows that no record lists, in the background: nothing waits for it, and a row that stays does no harm.
extension SessionArchive {
  /// Marks rows to be erased. Those above the limit stay until their session is removed.
  func discard(_ revisions: some Collection<UInt64>) {
    garbage += revisions.prefix(RouterLimits.maximumArchiveGarbage - garbage.count)
  }

  func eraseLater() {
    guard !garbage.isEmpty, !isErasing else { return }
    isErasing = true
    Task { await erase() }
  }

  private func erase() async {
    while !garbage.isEmpty {
      let revisions = Array(garbage.suffix(RouterLimits.archiveRequestCount))
      garbage.removeLast(revisions.count)
      let answers = await PipelinedRequests.run(revisions) { [bucket] revision in
        await Self.result { () throws(KeyValueError) in try await bucket.erase(revision: revision) }
      }
      // A row that is gone already is a rejection.
      let failed = zip(revisions, answers).filter {
        if case .failure(.rejected) = $1 { false } else { (try? $1.get()) == nil }
      }
      guard failed.isEmpty else {
        discard(failed.map(\.0))
        break
      }
    }
    isErasing = false
  }

  /// Whether all unlisted rows are erased.
  package var isClean: Bool { garbage.isEmpty && !isErasing }
}
