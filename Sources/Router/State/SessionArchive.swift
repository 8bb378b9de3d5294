import NATS
import NIOCore
import WireProtocol

/// Stores sessions in JetStream, where another Router finds them after this one is lost: one row for each waiting track, played
/// track and stored answer, and a record that lists the rows' revisions. Rows are written first, then the record, then
/// unlisted rows are erased; writing the record commits the change. The record is written with its expected revision, so a
/// Router that has lost the session cannot commit.
///
/// A row's key is used once, so that no row that a record lists is ever overwritten: `SESSION.KIND.WRITER-NUMBER`, with the
/// kinds `w` (waiting), `p` (played) and `a` (answer). `SESSION.s` is the record.
package actor SessionArchive {
  package struct Outcome: Sendable {
    /// Sessions that belong to other Routers. The rest of the batch is written nevertheless.
    package var overtaken: Set<SessionID> = []
    /// Sessions of which the archive has, or may have, the changes. Where the batch has failed, they are to be rewritten.
    package var possiblyWritten: Set<SessionID> = []
    /// Why the batch is not completely written.
    package var failure: ArchiveError?
  }

  /// A write with an unknown outcome.
  enum Attempt {
    /// Where it was rejected, the reason is unknown.
    case write(ArchiveWrite, isRefused: Bool)
    case removal
  }

  let bucket: KeyValueBucket
  let clock: CumulativeUptimeClock
  /// Unique to this start of the Router.
  let writer: String
  var lastNumber = 0
  var sessions: [SessionID: ArchivedSession] = [:]
  var unresolved: [SessionID: Attempt] = [:]
  var sessionsOfAnswers: [Int: SessionID] = [:]
  /// Counts down: answers of other Routers are older than all of this Router's.
  var lastAdoptedAnswer = 0
  /// Revisions of rows to erase after the session's next record: rows of a write that may still arrive, and undecodable ones.
  var orphanedRows: [SessionID: [UInt64]] = [:]
  /// Revisions of rows that no record lists.
  var garbage: [UInt64] = []
  var isErasing = false

  package init(_ bucket: KeyValueBucket, clock: CumulativeUptimeClock) {
    self.bucket = bucket
    self.clock = clock
    writer = String((0..<10).map { _ in "0123456789abcdefghijklmnopqrstuvwxyz".randomElement() ?? "0" })
  }

  /// The bucket of all Routers' sessions.
  package static func bucket(of client: NATSClient) -> KeyValueBucket {
    KeyValueBucket(own: "antiphon-sessions", client: client, seconds: RouterLimits.archiveTimeoutSeconds)
  }

  /// With a short timeout, for requests that may be repeated.
  nonisolated var queryBucket: KeyValueBucket {
    var query = bucket
    query.timeout = .seconds(RouterLimits.archiveQuestionSeconds)
    return query
  }

  /// Creates the bucket if it does not exist.
  ///
  /// - Parameter replicas: as `KeyValueBucket.Settings.replicas`.
  package nonisolated func open(replicas: Int) async throws(KeyValueError) {
    var settings = KeyValueBucket.Settings()
    settings.replicas = replicas
    settings.maximumByteCount = RouterLimits.archiveByteCount
    settings.allowsErasing = true
    try await queryBucket.createIfMissing(settings)
  }

  // MARK: Writing

  /// Writes a batch's changes of sessions. One batch at a time.
  package func write(_ batch: StateBatch) async -> Outcome {
    for id in batch.lost { forget(id) }
    var outcome = Outcome()
    let touched = sessionsTouched(by: batch)
    await resolveOutcomes(touched, &outcome)
    guard outcome.failure == nil else { return outcome }
    let removed = batch.cleared.filter { id in !batch.records.contains { $0.id == id } }
    var writes = stage(batch, touched.subtracting(removed).subtracting(outcome.overtaken))
    await writeRows(of: &writes, &outcome)
    guard outcome.failure == nil else { return outcome }
    await writeRecords(writes, &outcome)
    await remove(removed.subtracting(outcome.overtaken), &outcome)
    eraseLater()
    return outcome
  }

  /// Removes a session's stored state.
  package func remove(_ id: SessionID) async throws(ArchiveError) {
    var outcome = Outcome()
    await resolveOutcomes([id], &outcome)
    if outcome.failure == nil, outcome.overtaken.isEmpty { await remove([id], &outcome) }
    if let failure = outcome.failure { throw failure }
    guard outcome.overtaken.isEmpty else { throw .overtaken(id) }
  }

  /// Forgets a session that another Router has claimed: it is no longer written here.
  package func forget(_ id: SessionID) {
    unresolved[id] = nil
    orphanedRows[id] = nil
    for number in sessions.removeValue(forKey: id)?.answers.keys ?? [:].keys {
      sessionsOfAnswers[number] = nil
    }
  }

  private func sessionsTouched(by batch: StateBatch) -> Set<SessionID> {
    var touched = batch.cleared
    touched.formUnion(batch.changes.keys)
    for record in batch.records { touched.insert(record.id) }
    for answer in batch.answers { touched.insert(answer.intent.sessionID) }
    for number in batch.forgottenAnswers { if let id = sessionsOfAnswers[number] { touched.insert(id) } }
    let now = clock.milliseconds()
    for (id, milliseconds) in batch.positions {
      sessions[id]?.record?.positionMilliseconds = milliseconds
      guard let session = sessions[id],
        now - session.writtenMilliseconds >= RouterLimits.archivedPositionMilliseconds
      else { continue }
      touched.insert(id)
    }
    return touched
  }

  private func stage(_ batch: StateBatch, _ ids: Set<SessionID>) -> [ArchiveWrite] {
    var writes = Dictionary(
      uniqueKeysWithValues: ids.map { id in
        (id, ArchiveWrite(id, sessions[id] ?? ArchivedSession(), name: nextName()))
      })
    for id in batch.cleared { writes[id]?.clear() }
    for (id, changes) in batch.changes { for change in changes.list { writes[id]?.apply(change) } }
    for record in batch.records { writes[record.id]?.set(record) }
    // Answers of a session without stored state are not stored: nothing would ever remove them.
    for answer in batch.answers where writes[answer.intent.sessionID]?.session.record != nil {
      writes[answer.intent.sessionID]?.add(answer)
    }
    for number in batch.forgottenAnswers {
      if let id = sessionsOfAnswers[number] { writes[id]?.forgetAnswer(number) }
    }
    return writes.values.filter { $0.session.record != nil }
  }

  func nextName() -> String {
    lastNumber += 1
    return "\(writer)-\(lastNumber)"
  }
}
