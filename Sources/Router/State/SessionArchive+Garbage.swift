import NATS

/// Rows that no record names are erased in the background: nobody waits for it, and a row that stays does no harm.
extension SessionArchive {
  /// Remembers what is to be erased. What there is no room for stays until its session is removed.
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
      // What is gone already is an error of another kind.
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

  /// Whether all is erased that no record names.
  package var isClean: Bool { garbage.isEmpty && !isErasing }
}
