import NATS
import NIOCore
import WireProtocol

/// The steps of a write: rows, records, and what is removed.
extension SessionArchive {
  func writeRows(of writes: inout [ArchiveWrite], _ outcome: inout Outcome) async {
    var rows: [(index: Int, place: ArchivedPlace, key: String, text: String)] = []
    for (index, write) in writes.enumerated() {
      for (place, text) in write.inOrder {
        rows.append((index, place, "\(write.id.keyToken).\(place.kind).\(nextName())", text))
      }
    }
    guard !rows.isEmpty else { return }
    let answers = await PipelinedRequests.run(rows, sizes: rows.map(\.text.utf8.count)) { [bucket] row in
      await Self.result { () throws(KeyValueError) in
        try await bucket.put(row.key, ByteBuffer(string: row.text))
      }
    }
    for (row, answer) in zip(rows, answers) {
      switch answer {
      case .success(let revision): writes[row.index].wrote(row.place, revision: revision)
      case .failure(let error): outcome.failure = ArchiveError(error)
      }
    }
    guard outcome.failure != nil else { return }
    // No record will list them.
    discard(answers.compactMap { try? $0.get() })
  }

  func writeRecords(_ writes: [ArchiveWrite], _ outcome: inout Outcome) async {
    let now = clock.milliseconds()
    let records = writes.compactMap { write in
      write.session.record.map { record in
        ByteBuffer(
          bytes: JSON.versionedBytes(
            ArchivedRecord(write.session, record, runningMilliseconds: now, write: write.name)))
      }
    }
    let answers = await PipelinedRequests.run(
      zip(writes, records).map { (key: $0.id.recordKey, record: $1, revision: $0.session.revision) },
      sizes: records.map(\.readableBytes)
    ) { [bucket] write in
      let (key, record, revision) = write
      return await Self.result { () throws(KeyValueError) in
        revision == 0
          ? try await bucket.create(key, record) : try await bucket.update(key, record, revision: revision)
      }
    }
    for (write, answer) in zip(writes, answers) {
      switch answer {
      case .success(let revision): commit(write, revision, now, &outcome)
      // The cause may be an earlier write of this Router, possibly one that JetStream is still processing.
      case .failure(let error) where error == .wrongRevision || error.isOutcomeUnknown:
        unresolved[write.id] = .write(write, isRefused: error == .wrongRevision)
        if error != .wrongRevision {
          outcome.possiblyWritten.insert(write.id)
          outcome.failure = ArchiveError(error)
        }
      case .failure(let error):
        discard(write.newRevisions)
        outcome.failure = ArchiveError(error)
      }
    }
    let refused = zip(writes, answers).filter { $1 == .failure(.wrongRevision) }.map(\.0.id)
    guard !refused.isEmpty else { return }
    await resolveOutcomes(Set(refused), &outcome)
    for id in refused where !outcome.overtaken.contains(id) && !outcome.possiblyWritten.contains(id) {
      outcome.failure = outcome.failure ?? .unavailable("an earlier write is still in progress")
    }
  }

  func commit(
    _ write: ArchiveWrite, _ revision: UInt64, _ now: Int, _ outcome: inout Outcome
  ) {
    var write = write
    write.committed(revision: revision, at: now)
    for number in sessions[write.id]?.answers.keys ?? [:].keys { sessionsOfAnswers[number] = nil }
    for number in write.session.answers.keys { sessionsOfAnswers[number] = write.id }
    sessions[write.id] = write.session
    discard(write.garbage)
    discard(orphanedRows.removeValue(forKey: write.id) ?? [])
    outcome.possiblyWritten.insert(write.id)
  }

  func remove(_ ids: Set<SessionID>, _ outcome: inout Outcome) async {
    let known = ids.compactMap { id in sessions[id].map { (id, $0.revision) } }
    let answers = await PipelinedRequests.run(known) { [bucket] id, revision in
      await Self.result { () throws(KeyValueError) in
        try await bucket.delete(id.recordKey, revision: revision)
      }
    }
    var removed: [(SessionID, UInt64)] = []
    for ((id, _), answer) in zip(known, answers) {
      switch answer {
      case .success(let revision):
        removed.append((id, revision))
        forget(id)
      case .failure(let error):
        if error == .wrongRevision || error.isOutcomeUnknown { unresolved[id] = .removal }
        if error != .wrongRevision { outcome.failure = ArchiveError(error) }
      }
    }
    await resolveOutcomes(
      Set(zip(known, answers).filter { $1 == .failure(.wrongRevision) }.map(\.0.0)), &outcome)
    await purge(removed)
  }

  /// Purges all rows of removed sessions and the delete markers of their records. Later writes stay.
  func purge(_ sessions: [(SessionID, UInt64)]) async {
    _ = await PipelinedRequests.run(sessions) { [bucket] id, revision in
      await Self.result { () throws(KeyValueError) in
        try await bucket.purge("\(id.keyToken).>", through: revision)
      }
    }
  }
}

extension ArchiveWrite {
  /// Waiting rows in queue order, so that their revisions are consecutive.
  fileprivate var inOrder: [(ArchivedPlace, String)] {
    rows.sorted { order(of: $0.key) < order(of: $1.key) }.map { ($0.key, $0.value) }
  }

  private func order(of place: ArchivedPlace) -> (Int, Int64) {
    switch place {
    case .waiting(let id): (0, session.waiting[id]?.rank ?? 0)
    case .played(let number): (1, Int64(number))
    case .answer(let number): (2, Int64(number))
    }
  }

  /// Revisions of the rows that it has written.
  var newRevisions: [UInt64] {
    rows.keys.compactMap { place in
      switch place {
      case .waiting(let id): session.waiting[id]?.revision
      case .played(let number): session.played[number]
      case .answer(let number): session.answers[number]?.revision
      }
    }.filter { $0 > 0 }
  }
}
