import WireProtocol

/// What the archive has of one session, as this Router wrote or read it last: enough to write the next change, without
/// what the rows say.
struct ArchivedSession: Sendable {
  struct Waiting: Sendable {
    var rank: Int64
    var revision: UInt64
  }

  struct Answer: Sendable {
    var revision: UInt64
    /// By this Router's running time.
    var answeredMilliseconds: Int
  }

  /// Of the record; 0 where there is none.
  var revision: UInt64 = 0
  var record: SessionRecord?
  /// By entry.
  var waiting: [String: Waiting] = [:]
  /// By number.
  var played: [Int: UInt64] = [:]
  var answers: [Int: Answer] = [:]
  /// When the record was written, by this Router's running time.
  var writtenMilliseconds = 0
}

/// One of a session's rows.
enum ArchivedPlace: Hashable, Sendable {
  case waiting(String)
  case played(Int)
  case answer(Int)

  /// What its key has behind the session.
  var kind: String {
    switch self {
    case .waiting: "w"
    case .played: "p"
    case .answer: "a"
    }
  }
}

/// An answer as a row. Its number and age are the record's to say.
struct ArchivedAnswer: Codable, Sendable {
  var key: String
  var fingerprint: String
  var json: String
  var client: String

  init(_ answer: StoredAnswer) {
    key = answer.intent.key.text
    fingerprint = answer.fingerprint
    json = String(decoding: answer.json, as: UTF8.self)
    client = answer.client.description
  }

  func answer(of id: SessionID, number: Int, answeredMilliseconds: Int) -> StoredAnswer? {
    guard let key = try? IdempotencyKey(key) else { return nil }
    return StoredAnswer(
      intent: Intent(id, key), fingerprint: fingerprint, json: Array(json.utf8),
      answeredAtMilliseconds: answeredMilliseconds, number: number, client: ClientID(kept: client))
  }
}

/// A change of one session on its way to the archive.
struct ArchiveWrite: Sendable {
  let id: SessionID
  /// What the archive has once the record is written.
  private(set) var session: ArchivedSession
  /// What is to be written before the record.
  private(set) var rows: [ArchivedPlace: String] = [:]
  /// Revisions of rows that the record names no more.
  private(set) var garbage: [UInt64] = []
  /// Unique to this attempt.
  let name: String

  init(_ id: SessionID, _ session: ArchivedSession, name: String) {
    self.id = id
    self.session = session
    self.name = name
  }

  /// Nothing waits and nothing has played.
  mutating func clear() {
    apply(.leftAll)
    for number in session.played.keys { drop(.played(number)) }
  }

  mutating func apply(_ change: TrackQueue.Change) {
    switch change {
    case .waits(let entry, let rank):
      drop(.waiting(entry.id))
      session.waiting[entry.id] = .init(rank: rank, revision: 0)
      rows[.waiting(entry.id)] = JSON.text(entry)
    case .moved(let id, let rank): session.waiting[id]?.rank = rank
    case .dealt(let ids):
      for (place, id) in ids.enumerated() { session.waiting[id]?.rank = TrackQueue.dealtRank(at: place) }
    case .left(let id): drop(.waiting(id))
    case .leftAll: for id in session.waiting.keys { drop(.waiting(id)) }
    case .played(let entry, let number):
      drop(.played(number))
      session.played[number] = 0
      rows[.played(number)] = JSON.text(entry)
    case .forgotten(let number): drop(.played(number))
    }
  }

  mutating func set(_ record: SessionRecord) { session.record = record }

  mutating func add(_ answer: StoredAnswer) {
    drop(.answer(answer.number))
    session.answers[answer.number] = .init(
      revision: 0, answeredMilliseconds: answer.answeredAtMilliseconds)
    rows[.answer(answer.number)] = JSON.text(ArchivedAnswer(answer))
  }

  mutating func forgetAnswer(_ number: Int) { drop(.answer(number)) }

  private mutating func drop(_ place: ArchivedPlace) {
    rows[place] = nil
    let revision: UInt64? =
      switch place {
      case .waiting(let id): session.waiting.removeValue(forKey: id)?.revision
      case .played(let number): session.played.removeValue(forKey: number)
      case .answer(let number): session.answers.removeValue(forKey: number)?.revision
      }
    if let revision, revision > 0 { garbage.append(revision) }
  }

  /// A row is written.
  mutating func wrote(_ place: ArchivedPlace, revision: UInt64) {
    switch place {
    case .waiting(let id): session.waiting[id]?.revision = revision
    case .played(let number): session.played[number] = revision
    case .answer(let number): session.answers[number]?.revision = revision
    }
  }

  /// The record is written.
  mutating func committed(revision: UInt64, at milliseconds: Int) {
    session.revision = revision
    session.writtenMilliseconds = milliseconds
  }
}
