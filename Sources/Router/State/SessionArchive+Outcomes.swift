import NATS
import NIOCore
import WireProtocol

/// Outcomes of writes without an answer, and of rejections that an earlier write may have caused.
extension SessionArchive {
  /// Determines the outcome of writes that got no answer, or a rejection that an earlier write of this Router may have caused.
  func resolveOutcomes(_ ids: Set<SessionID>, _ outcome: inout Outcome) async {
    let unknown = ids.filter { unresolved[$0] != nil }
    guard !unknown.isEmpty else { return }
    let entries = await PipelinedRequests.run(Array(unknown)) { [queryBucket] id in
      (
        id,
        await Self.result { () throws(KeyValueError) in
          try await queryBucket.last(id.recordKey, from: .leader)
        }
      )
    }
    var removed: [(SessionID, UInt64)] = []
    for (id, answer) in entries {
      switch answer {
      case .success(let entry): resolveOutcomes(id, entry, &outcome, &removed)
      case .failure(let error):
        outcome.possiblyWritten.insert(id)
        outcome.failure = ArchiveError(error)
      }
    }
    await purge(removed)
  }

  private func resolveOutcomes(
    _ id: SessionID, _ entry: KeyValueEntry?, _ outcome: inout Outcome,
    _ removed: inout [(SessionID, UInt64)]
  ) {
    guard let attempt = unresolved.removeValue(forKey: id) else { return }
    let known = sessions[id]?.revision ?? 0
    let there = entry?.value.flatMap { Self.decode($0) }
    switch attempt {
    case .write(let write, _) where there?.write == write.name:
      commit(write, entry?.revision ?? 0, clock.milliseconds(), &outcome)
    case .removal where entry?.value == nil:
      removed.append((id, entry?.revision ?? known))
      forget(id)
    case _ where entry?.revision ?? 0 == known || known == 0 && entry?.value == nil: keepRows(of: attempt, id)
    // A write of this Router's that was taken for lost has come late.
    case _ where there?.write.hasPrefix("\(writer)-") == true:
      sessions[id, default: ArchivedSession()].revision = entry?.revision ?? 0
      keepRows(of: attempt, id)
    case .write(let write, let isRefused):
      forget(id)
      // One that was not refused may have come, and who has the session now may name its rows.
      if isRefused { discard(write.newRevisions) }
      outcome.overtaken.insert(id)
    case .removal:
      forget(id)
      outcome.overtaken.insert(id)
    }
  }

  /// Rows of a write that has not come, and still may, are erased once a later one has.
  private func keepRows(of attempt: Attempt, _ id: SessionID) {
    guard case .write(let write, _) = attempt else { return }
    let room = max(0, RouterLimits.maximumArchiveGarbage - orphanedRows[id, default: []].count)
    orphanedRows[id, default: []] += write.newRevisions.prefix(room)
  }

  static func decode(_ value: ByteBuffer) -> ArchivedRecord? {
    try? JSON.decode(Versioned<ArchivedRecord>.self, from: Array(value.readableBytesView)).value
  }

  static func result<Value>(
    _ body: () async throws(KeyValueError) -> Value
  ) async -> Result<Value, KeyValueError> {
    do throws(KeyValueError) { return .success(try await body()) } catch { return .failure(error) }
  }
}
