import NATS
import NIOCore
import WireProtocol

/// A session's content in the archive.
package struct ArchivedContent: Sendable {
  package var record: SessionRecord
  /// From the head.
  package var waiting: [TrackQueue.Waiting]
  /// The oldest first; the last has the number `record.lastPlayedNumber`.
  package var history: [QueueEntry]
  /// The oldest first. Their numbers are below those that this Router gives.
  package var answers: [StoredAnswer]
  /// Values that could not be decoded.
  package var unreadable: [Unreadable]
  /// The archive's own state of the session once it is taken over.
  var session: ArchivedSession
  let archived: ArchivedRecord
  let unreadableRevisions: [UInt64]
}

extension SessionArchive {
  /// Reads a session's stored state, consistent at one moment: the record from the leader, rows, which are never overwritten,
  /// from any server.
  ///
  /// - Returns: nil where there is none.
  package func read(_ id: SessionID) async throws(ArchiveError) -> ArchivedContent? {
    for _ in 0..<RouterLimits.archiveReadAttempts {
      guard let entry = try await last(id.recordKey), let value = entry.value else { return nil }
      guard let record = Self.decode(value) else {
        throw .unreadable(id, "its record is damaged or was written by a newer version")
      }
      let revisions = record.waiting.revisions + record.played.revisions + record.answers.revisions
      let rows = try await self.rows(revisions, of: id)
      // A row is missing where another Router has written the session meanwhile and erased unlisted rows.
      if rows.contains(nil), try await last(id.recordKey)?.revision != entry.revision { continue }
      return content(of: id, entry.revision, record, rows)
    }
    throw .unavailable("another Router keeps writing the session \(id)")
  }

  /// Reads a session and writes its record again, so that its former Router cannot commit any more and the content read is
  /// final. `take` follows once it is stored on this Router's disk.
  ///
  /// - Returns: nil where there is none.
  func claim(_ id: SessionID) async throws(ArchiveError) -> ArchivedContent? {
    for _ in 0..<RouterLimits.archiveReadAttempts {
      guard var content = try await read(id) else { return nil }
      var record = content.archived
      record.write = nextName()
      let value = ByteBuffer(bytes: JSON.versionedBytes(record))
      do throws(KeyValueError) {
        content.session.revision = try await bucket.update(
          id.recordKey, value, revision: content.session.revision)
        return content
      } catch {
        guard error == .wrongRevision || error.isOutcomeUnknown else { throw ArchiveError(error) }
      }
    }
    throw .unavailable("another Router keeps writing the session \(id)")
  }

  /// Numbers for answers that another Router has stored.
  func adoptedAnswerNumbers(_ count: Int) -> Range<Int> {
    lastAdoptedAnswer -= count
    return lastAdoptedAnswer..<lastAdoptedAnswer + count
  }

  /// This Router takes over a session that was read.
  package func take(_ content: ArchivedContent) {
    forget(content.record.id)
    sessions[content.record.id] = content.session
    for number in content.session.answers.keys { sessionsOfAnswers[number] = content.record.id }
    // The record lists them until the next write.
    orphanedRows[content.record.id] = content.unreadableRevisions
  }

  private func last(_ key: String) async throws(ArchiveError) -> KeyValueEntry? {
    do throws(KeyValueError) { return try await queryBucket.last(key, from: .leader) } catch {
      throw ArchiveError(error)
    }
  }

  /// - Returns: nil for missing rows.
  private func rows(_ revisions: [UInt64], of id: SessionID) async throws(ArchiveError) -> [String?] {
    let prefix = "\(id.keyToken)."
    let answers = await PipelinedRequests.run(revisions) { [queryBucket] revision in
      await Self.result { () throws(KeyValueError) -> KeyValueEntry? in
        // A replica may lag, or be gone.
        if let entry = try? await queryBucket.get(revision: revision) { return entry }
        return try await queryBucket.get(revision: revision, from: .leader)
      }
    }
    var rows: [String?] = []
    for answer in answers {
      do throws(KeyValueError) {
        let entry = try answer.get()
        rows.append(entry.flatMap { $0.key.hasPrefix(prefix) ? $0.value.map { String(buffer: $0) } : nil })
      } catch { throw ArchiveError(error) }
    }
    return rows
  }

  private func content(
    of id: SessionID, _ revision: UInt64, _ archived: ArchivedRecord, _ rows: [String?]
  ) -> ArchivedContent {
    let now = clock.milliseconds()
    var unreadable: [Unreadable] = []
    var revisions: [UInt64] = []
    var rest = rows[...]
    func values<Value: Decodable>(_ place: String, _ list: RevisionList) -> [(UInt64, Value)] {
      let texts = rest.prefix(list.revisions.count)
      rest = rest.dropFirst(list.revisions.count)
      return zip(zip(list.revisions, texts), JSON.values(texts.map { $0 ?? "null" }) as [Value?]).compactMap {
        if let value = $1 { return ($0.0, value) }
        revisions.append($0.0)
        unreadable.append(
          Unreadable(
            sessionID: id.description, place: "\(place) \($0.0)", content: $0.1 ?? "it is gone",
            removal: nil))
        return nil
      }
    }
    var record = archived.record(of: id, now: now, &unreadable)
    var session = ArchivedSession()
    var waiting: [TrackQueue.Waiting] = []
    let entries: [(UInt64, QueueEntry)] = values("waiting", archived.waiting)
    for (place, (revision, entry)) in entries.enumerated() {
      let rank = TrackQueue.dealtRank(at: place)
      waiting.append(.init(entry: entry, rank: rank))
      session.waiting[entry.id] = .init(rank: rank, revision: revision)
    }
    let played: [(UInt64, QueueEntry)] = values("played", archived.played)
    for (place, (revision, _)) in played.enumerated() {
      session.played[record.lastPlayedNumber - played.count + 1 + place] = revision
    }
    var answers: [StoredAnswer] = []
    let given: [(UInt64, ArchivedAnswer)] = values("answer", archived.answers)
    let times = Dictionary(
      zip(archived.answers.revisions, archived.answeredMilliseconds), uniquingKeysWith: { $1 })
    for (number, (revision, row)) in zip(adoptedAnswerNumbers(given.count), given) {
      let answered = (times[revision] ?? archived.runningMilliseconds) + now - archived.runningMilliseconds
      guard let answer = row.answer(of: id, number: number, answeredMilliseconds: answered) else { continue }
      answers.append(answer)
      session.answers[number] = .init(revision: revision, answeredMilliseconds: answered)
    }
    let queue = TrackQueue(
      current: record.current, waiting: waiting, history: played.map(\.1),
      lastPlayedNumber: record.lastPlayedNumber, loop: record.loop, bitrateKilobits: record.bitrateKilobits,
      lastID: record.lastID)
    record.rows = StoredRows(queue)
    session.revision = revision
    session.record = record
    session.writtenMilliseconds = now
    return ArchivedContent(
      record: record, waiting: waiting, history: played.map(\.1), answers: answers, unreadable: unreadable,
      session: session, archived: archived, unreadableRevisions: revisions)
  }
}
