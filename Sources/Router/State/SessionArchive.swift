import NATS
import NIOCore
import WireProtocol

/// What is kept of sessions in NATS, where another Router finds it when this one is gone: rows of their own for what waits,
/// has played and was answered, and a record that names them. Rows are written first, then the record, then what it names
/// no more is erased. So one message commits a change, whenever this Router dies. The record is written with the revision
/// that is expected: who was overtaken writes nothing that counts.
///
/// A row's key is used once, so that nobody ever writes over a row that some record names:
/// `SESSION.KIND.WRITER-NUMBER`, with the kinds `w` (waits), `p` (has played) and `a` (an answer). `SESSION.s` is the record.
package actor SessionArchive {
  package struct Outcome: Sendable {
    /// Sessions that are another Router's. The others are not kept from being written.
    package var overtaken: Set<SessionID> = []
    /// Sessions of which the archive has, or may have, what was to be written. Where the batch has failed they are to be
    /// written anew.
    package var ahead: Set<SessionID> = []
    /// Why not all of the batch is written.
    package var failure: ArchiveError?
  }

  /// A write whose outcome is not known.
  enum Attempt {
    /// Where it was refused, it is the reason that is not known.
    case write(ArchiveWrite, isRefused: Bool)
    case removal
  }

  let bucket: KeyValueBucket
  let clock: CumulativeUptimeClock
  /// Unique to this start of the Router.
  let writer: String
  var lastNumber = 0
  var sessions: [SessionID: ArchivedSession] = [:]
  var unsettled: [SessionID: Attempt] = [:]
  var sessionsOfAnswers: [Int: SessionID] = [:]
  /// Counts down: answers of other Routers are older than all of this one's.
  var lastAdoptedAnswer = 0
  /// Rows of writes that may come late.
  var leftovers: [SessionID: [UInt64]] = [:]
  /// Revisions of rows that no record names.
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

  /// For what may be asked again.
  nonisolated var asking: KeyValueBucket {
    var asking = bucket
    asking.timeout = .seconds(RouterLimits.archiveQuestionSeconds)
    return asking
  }

  /// Makes its bucket where it is not there.
  ///
  /// - Parameter replicas: as `KeyValueBucket.Settings.replicas`.
  package nonisolated func open(replicas: Int) async throws(KeyValueError) {
    var settings = KeyValueBucket.Settings()
    settings.replicas = replicas
    settings.maximumByteCount = RouterLimits.archiveByteCount
    settings.allowsErasing = true
    try await asking.createUnlessThere(settings)
  }

  // MARK: Writing

  /// Writes what a batch changes of sessions. One batch at a time.
  package func write(_ batch: StateBatch) async -> Outcome {
    for id in batch.lost { forget(id) }
    var outcome = Outcome()
    let touched = sessionsTouched(by: batch)
    await settle(touched, &outcome)
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

  /// Removes all that is kept of a session.
  package func remove(_ id: SessionID) async throws(ArchiveError) {
    var outcome = Outcome()
    await settle([id], &outcome)
    if outcome.failure == nil, outcome.overtaken.isEmpty { await remove([id], &outcome) }
    if let failure = outcome.failure { throw failure }
    guard outcome.overtaken.isEmpty else { throw .overtaken(id) }
  }

  /// Lets go of a session that is another Router's: nothing of it is written any more.
  package func forget(_ id: SessionID) {
    unsettled[id] = nil
    leftovers[id] = nil
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
    // What was asked of a session that keeps nothing leaves no answer: nobody would ever remove it.
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
