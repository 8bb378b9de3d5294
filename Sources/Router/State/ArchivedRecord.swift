import WireProtocol

/// What names everything that is kept of a session: its own record, and its rows by the revisions with which they were
/// written. Writing it is what commits a change; a row that it does not name does not exist.
struct ArchivedRecord: Codable, Sendable {
  var volume: Double
  var loop: String
  var bitrateKilobits: Int?
  /// JSON with a version of its own, as in SQLite: one that cannot be read does not spoil the others.
  var current: String?
  var playing: String?
  var prepared: String?
  var hasBegun: Bool
  var lastID: Int
  var lastPlayedNumber: Int
  var positionMilliseconds: Int
  var touchedMilliseconds: Int
  /// The writer's running time at the write: ages are counted from it, whatever the reader's is.
  var runningMilliseconds: Int
  var creator: String
  /// In their order, from the head.
  var waiting: RevisionList
  /// The oldest first.
  var played: RevisionList
  var answers: RevisionList
  /// When each of `answers` was given, by the writer's running time.
  var answeredMilliseconds: [Int]
  /// Unique to this write, so that one whose outcome is not known can be told from others'.
  var write: String

  enum CodingKeys: String, CodingKey {
    case volume, loop, current, playing, prepared, creator, waiting, played, answers, write
    case bitrateKilobits = "bitrate_kbps"
    case hasBegun = "has_begun"
    case lastID = "last_id"
    case lastPlayedNumber = "last_played"
    case positionMilliseconds = "position_ms"
    case touchedMilliseconds = "touched_ms"
    case runningMilliseconds = "running_ms"
    case answeredMilliseconds = "answered_ms"
  }

  init(_ session: ArchivedSession, _ record: SessionRecord, runningMilliseconds: Int, write: String) {
    volume = record.volume
    loop = record.loop.rawValue
    bitrateKilobits = record.bitrateKilobits
    current = record.current.map(JSON.text)
    playing = record.playing.map(JSON.text)
    prepared = record.prepared.map(JSON.text)
    hasBegun = record.hasBegun
    lastID = record.lastID
    lastPlayedNumber = record.lastPlayedNumber
    positionMilliseconds = record.positionMilliseconds
    touchedMilliseconds = record.touchedMilliseconds
    self.runningMilliseconds = runningMilliseconds
    creator = record.creator.description
    waiting = RevisionList(
      session.waiting.values.sorted { $0.rank < $1.rank }.map(\.revision))
    played = RevisionList(session.played.sorted { $0.key < $1.key }.map(\.value))
    let given = session.answers.sorted { $0.key < $1.key }.map(\.value)
    answers = RevisionList(given.map(\.revision))
    answeredMilliseconds = given.map(\.answeredMilliseconds)
    self.write = write
  }

  /// The session's own record, without the numbers of its rows.
  ///
  /// - Parameter now: the reader's running time.
  func record(of id: SessionID, now: Int, _ unreadable: inout [Unreadable]) -> SessionRecord {
    func value<Value: Decodable>(_ place: String, _ text: String?) -> Value? {
      guard let text else { return nil }
      if let value: Value = JSON.value(text) { return value }
      unreadable.append(Unreadable(sessionID: id.description, place: place, content: text, removal: nil))
      return nil
    }
    var record = SessionRecord(id: id)
    record.volume = volume
    record.loop = LoopMode(rawValue: loop) ?? .off
    record.bitrateKilobits = bitrateKilobits
    record.current = value("current", current)
    record.playing = value("playing", playing)
    record.prepared = value("prepared", prepared)
    record.hasBegun = hasBegun
    record.lastID = lastID
    record.lastPlayedNumber = lastPlayedNumber
    record.positionMilliseconds = positionMilliseconds
    // Zero is one that was never written.
    record.touchedMilliseconds = max(1, touchedMilliseconds + now - runningMilliseconds)
    record.creator = ClientID(kept: creator)
    return record
  }
}

/// Revisions in an order, as text: `120-619 7 702`. Rows that were written one after another take a few bytes together.
struct RevisionList: Codable, Sendable, Equatable {
  var revisions: [UInt64]

  init(_ revisions: [UInt64]) { self.revisions = revisions }

  init(from decoder: any Decoder) throws {
    let container = try decoder.singleValueContainer()
    revisions = []
    for run in try container.decode(String.self).split(separator: " ") {
      let ends = run.split(separator: "-", maxSplits: 1, omittingEmptySubsequences: false).map { UInt64($0) }
      guard let first = ends[0], let last = ends[ends.count - 1], first <= last,
        last - first < UInt64(RouterLimits.maximumArchivedRows - revisions.count)
      else {
        throw DecodingError.dataCorruptedError(in: container, debugDescription: "no revisions: \(run)")
      }
      revisions += first...last
    }
  }

  func encode(to encoder: any Encoder) throws {
    var text = ""
    var index = 0
    while index < revisions.count {
      var end = index + 1
      while end < revisions.count, revisions[end] == revisions[end - 1] + 1 { end += 1 }
      if !text.isEmpty { text += " " }
      text += "\(revisions[index])"
      if end - index > 1 { text += "-\(revisions[end - 1])" }
      index = end
    }
    var container = encoder.singleValueContainer()
    try container.encode(text)
  }
}
