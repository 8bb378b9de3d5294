import Collections
import WireProtocol

/// What a session plays, has played and will play. It knows nothing of engines and disks: each change returns
/// what is to be done, and notes what is to be written (`takeChanges()`).
package struct TrackQueue: Sendable, Equatable {
  /// What is to be done after a change.
  package enum Action: Equatable, Sendable {
    case play(QueueEntry)
    case stop
  }

  /// One that waits. Ranks rise from the head to the end, with room between them, so that a move writes one row.
  package struct Waiting: Sendable, Equatable {
    package var entry: QueueEntry
    package var rank: Int64

    package init(entry: QueueEntry, rank: Int64) {
      self.entry = entry
      self.rank = rank
    }
  }

  /// What a change has done to the rows on disk; the session's own row is written with every change.
  package enum Change: Sendable, Equatable {
    case waits(QueueEntry, rank: Int64)
    case moved(id: String, rank: Int64)
    /// All that wait are in this order: the rank of each is `dealtRank` of its place.
    case dealt([String])
    case left(id: String)
    case leftAll
    /// `number` counts up forever: the newest of the history has the highest.
    case played(QueueEntry, number: Int)
    case forgotten(number: Int)
  }

  /// How a track came to its end.
  private enum Departure {
    case finished, failed, skipped
  }

  /// The entry that plays or is about to, nil while the session is idle.
  package private(set) var current: QueueEntry?
  package internal(set) var waiting: Deque<Waiting> = []
  /// Of what waits, and of the history.
  var waitingByteCount = 0
  private var historyByteCount = 0
  /// Beyond which the oldest of the history are forgotten.
  package var historyByteLimit = RouterLimits.historyByteCount
  /// The oldest first.
  package private(set) var history: Deque<QueueEntry> = []
  package private(set) var loop = LoopMode.off
  /// What the queue's tracks are encoded with, in kbit/s; nil for the engine's own.
  package var bitrateKilobits: Int?
  package private(set) var lastID = 0
  package private(set) var lastPlayedNumber = 0
  var changes: [Change] = []

  package init() {}

  /// A queue as it was kept.
  package init(
    current: QueueEntry?, waiting: [Waiting], history: [QueueEntry], lastPlayedNumber: Int, loop: LoopMode,
    bitrateKilobits: Int?, lastID: Int
  ) {
    self.current = current
    self.waiting = Deque(waiting)
    self.history = Deque(history)
    self.lastPlayedNumber = lastPlayedNumber
    self.loop = loop
    self.bitrateKilobits = bitrateKilobits
    self.lastID = lastID
    waitingByteCount = waiting.reduce(0) { $0 + $1.entry.byteCount }
    historyByteCount = history.reduce(0) { $0 + $1.byteCount }
  }

  package var isEmpty: Bool { current == nil && waiting.isEmpty }
  /// Whether it is as a queue nobody has used.
  package var isUnmodified: Bool { isEmpty && history.isEmpty && loop == .off && bitrateKilobits == nil }

  /// What it takes in memory, and about what it takes on disk.
  package var byteCount: Int { rowsByteCount + (current?.byteCount ?? 0) }
  /// The same without the current entry, which is in the session's own row.
  package var rowsByteCount: Int { waitingByteCount + historyByteCount }
  /// On disk, besides the session's own.
  package var rowCount: Int { waiting.count + history.count }
  /// What the session's own row has of it.
  package var withoutRows: TrackQueue {
    TrackQueue(
      current: current, waiting: [], history: [], lastPlayedNumber: lastPlayedNumber, loop: loop,
      bitrateKilobits: bitrateKilobits, lastID: lastID)
  }

  package var hasChangedRows: Bool { !changes.isEmpty }

  /// What is to be written since the last time.
  package mutating func takeChanges() -> [Change] {
    defer { changes = [] }
    return changes
  }

  /// Everything as rows, for one who has written nothing yet.
  package var allRows: [Change] {
    let firstNumber = lastPlayedNumber - history.count + 1
    return waiting.map { .waits($0.entry, rank: $0.rank) }
      + history.enumerated().map { .played($0.element, number: firstNumber + $0.offset) }
  }

  // MARK: Adding and removing

  /// Where new entries go.
  package enum Place: Sendable, Equatable {
    case end
    /// Before the entry that has this place among those that wait; 0 is the head.
    case index(Int)
  }

  /// Adds tracks that are `checked()`. Where the session is idle, the first that waits plays at once.
  ///
  /// - Returns: the entries' names, and what is to be done.
  package mutating func add(
    _ tracks: [QueuedTrack], at place: Place = .end, isSessionIdle: Bool
  ) throws(RequestError) -> (added: [String], action: Action?) {
    guard waiting.count + tracks.count <= RouterLimits.maximumQueueEntries else {
      let most = RouterLimits.maximumQueueEntries
      throw RequestError(
        .queueFull,
        tracks.count == 1
          ? "the queue has \(most) tracks, the most it holds"
          : "the queue has \(waiting.count) tracks and holds \(most): there is no room for \(tracks.count) more",
        hint: "remove some with queue_remove or queue_clear")
    }
    let byteCount = tracks.reduce(0) { $0 + $1.byteCount }
    guard self.byteCount + byteCount <= RouterLimits.queueByteCount else {
      throw RequestError(
        .queueFull,
        "the queue and its history take \(self.byteCount) bytes of \(RouterLimits.queueByteCount): "
          + "there is no room for \(byteCount) more",
        hint: "remove some with queue_remove or queue_clear")
    }
    let entries = tracks.map { newEntry($0) }
    let index: Int =
      switch place {
      case .end: waiting.count
      case .index(let index): min(index, waiting.count)
      }
    insert(entries, at: index)
    return (entries.map(\.id), isSessionIdle ? advance(.finished).map(Action.play) : nil)
  }

  /// Takes one that waits out.
  package mutating func remove(id: String) throws(RequestError) {
    guard current?.id != id else {
      throw RequestError(.invalidState, "the queue entry \(id) plays now", hint: "use skip to end it")
    }
    take(at: try index(of: id))
  }

  /// Forgets what waits; what plays goes on.
  package mutating func clear() {
    guard !waiting.isEmpty else { return }
    waiting.removeAll()
    waitingByteCount = 0
    changes.append(.leftAll)
  }

  package mutating func setLoop(_ mode: LoopMode) {
    loop = mode
  }

  // MARK: Advancing

  /// What follows when the current track has finished by itself; nil where nothing does.
  package var following: QueueEntry? {
    switch loop {
    case .off: waiting.first?.entry
    case .track: current ?? waiting.first?.entry
    case .queue: waiting.first?.entry ?? current
    }
  }

  /// An entry for what is asked for by itself. It is of the queue once it plays (`nowPlays(_:)`).
  package mutating func newEntry(_ track: QueuedTrack) -> QueueEntry {
    lastID += 1
    return QueueEntry(id: String(lastID), track)
  }

  /// What was asked for by itself plays, and the queue waits.
  package mutating func nowPlays(_ entry: QueueEntry) {
    leaveCurrent(.skipped)
    current = entry
  }

  /// What plays is nothing that a queue could hold, and the queue waits.
  package mutating func nowPlaysNothing() { leaveCurrent(.skipped) }

  /// Ends what plays: the next track starts, or the session stops when there is none.
  package mutating func skip(isSessionIdle: Bool) throws(RequestError) -> Action {
    guard !isSessionIdle || !waiting.isEmpty || (loop == .queue && current != nil) else {
      throw RequestError(.noSuchSession, "the session plays nothing and its queue is empty")
    }
    return advance(.skipped).map(Action.play) ?? .stop
  }

  /// Plays one that waits now; those before it go on waiting.
  package mutating func skip(to id: String) throws(RequestError) -> Action {
    let entry = take(at: try index(of: id))
    leaveCurrent(.skipped)
    current = entry
    return .play(entry)
  }

  /// Plays again what played before; what plays now is the next.
  package mutating func previous() throws(RequestError) -> Action {
    guard let entry = history.popLast() else {
      throw RequestError(.notFound, "nothing has played before", hint: "history lists what has")
    }
    historyByteCount -= entry.byteCount
    changes.append(.forgotten(number: lastPlayedNumber))
    lastPlayedNumber -= 1
    // Where the queue loops, it waits already.
    if let index = waiting.firstIndex(where: { $0.entry.id == entry.id }) { take(at: index) }
    if let current, current.id != entry.id { insert([current], at: 0) }
    current = entry
    return .play(entry)
  }

  /// What follows when the session has ended; only an end by itself advances the queue.
  package mutating func ended(_ reason: EngineEvent.EndReason) -> Action? {
    switch reason {
    case .finished: return advance(.finished).map(Action.play)
    case .loadFailed: return advance(.failed).map(Action.play)
    case .stopped, .cleanup: leaveCurrent(.skipped)
    // The play that replaced it has said already what plays, and of one that moved nothing has ended.
    case .replaced, .moved: break
    }
    return nil
  }

  /// Whether an entry plays or waits.
  package func holds(_ id: String) -> Bool {
    current?.id == id || waiting.contains { $0.entry.id == id }
  }

  /// Whether an entry has played, and does not come again.
  package func hasLeft(_ id: String) -> Bool { !holds(id) && history.contains { $0.id == id } }

  /// The engine has advanced by itself to an entry that was prepared.
  ///
  /// - Returns: false where the queue has no such entry.
  package mutating func didAdvance(to id: String) -> Bool {
    if current?.id == id { return true }
    if following?.id == id {
      _ = advance(.finished)
      return true
    }
    guard let index = waiting.firstIndex(where: { $0.entry.id == id }) else { return false }
    let entry = take(at: index)
    leaveCurrent(.finished)
    current = entry
    return true
  }

  /// Adds to what is known of the current track.
  package mutating func describeCurrent(_ change: (inout QueuedTrack) -> Void) {
    guard current != nil else { return }
    change(&current!.track)
  }

  private mutating func advance(_ departure: Departure) -> QueueEntry? {
    if departure == .finished, loop == .track, let current { return current }
    leaveCurrent(departure)
    current = waiting.isEmpty ? nil : take(at: 0)
    return current
  }

  private mutating func leaveCurrent(_ departure: Departure) {
    guard let left = current else { return }
    current = nil
    lastPlayedNumber += 1
    history.append(left)
    historyByteCount += left.byteCount
    changes.append(.played(left, number: lastPlayedNumber))
    while history.count > RouterLimits.maximumHistoryEntries
      || historyByteCount > historyByteLimit
    {
      historyByteCount -= history.removeFirst().byteCount
      changes.append(.forgotten(number: lastPlayedNumber - history.count))
    }
    // One that cannot be played would come round forever.
    if loop == .queue, departure != .failed { insert([left], at: waiting.count) }
  }
}
