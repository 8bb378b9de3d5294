import Collections
import WireProtocol

/// What a session plays after what it plays now. It lives in memory and knows nothing of engines: each change returns what
/// is to be done, and the session does it.
package struct TrackQueue {
  /// One track that waits or plays.
  package struct Entry: Codable, Sendable, Equatable {
    package var id: String
    package var url: String

    package init(id: String, url: String) {
      self.id = id
      self.url = url
    }
  }

  /// What is to be done after a change.
  package enum Action: Equatable, Sendable {
    case play(Entry)
    case stop
  }

  /// The entry that plays, nil while the session is idle or plays what was never queued.
  package private(set) var current: Entry?
  package private(set) var tracks: Deque<Entry> = []
  private var lastID = 0

  package init() {}

  package var isEmpty: Bool { current == nil && tracks.isEmpty }

  /// The queue as clients see it.
  package var view: QueueView { QueueView(current: current, tracks: Array(tracks)) }

  /// Adds a track at the end; where the session is idle, the first that waits plays at once.
  package mutating func add(url: String, isSessionIdle: Bool) throws(Refusal) -> Action? {
    guard tracks.count < RouterLimits.maximumQueueEntries else {
      throw Refusal(
        .queueFull, "the queue has \(RouterLimits.maximumQueueEntries) tracks, the most it holds",
        hint: "remove some with queue_remove or queue_clear")
    }
    try Self.check(url)
    lastID += 1
    tracks.append(Entry(id: String(lastID), url: url))
    return isSessionIdle ? advance() : nil
  }

  package mutating func remove(id: String) throws(Refusal) {
    guard current?.id != id else {
      throw Refusal(.invalidState, "the queue entry \(id) plays now", hint: "use skip to end it")
    }
    guard let index = tracks.firstIndex(where: { $0.id == id }) else {
      throw Refusal(
        .notFound, "there is no queue entry \(id.debugDescription)", hint: "queue lists the entries")
    }
    tracks.remove(at: index)
  }

  /// Forgets what waits; what plays goes on.
  package mutating func clear() {
    tracks.removeAll()
  }

  /// Ends what plays: the next track starts, or the session stops when there is none.
  package mutating func skip(isSessionIdle: Bool) throws(Refusal) -> Action {
    if let next = advance() { return next }
    guard !isSessionIdle else {
      throw Refusal(.noSuchSession, "the session plays nothing and its queue is empty")
    }
    return .stop
  }

  /// What follows when the session has ended; only an end by itself lets the queue go on.
  package mutating func ended(_ reason: EngineEvent.EndReason) -> Action? {
    switch reason {
    case .finished, .loadFailed: return advance()
    case .stopped, .cleanup: current = nil
    // The play that replaced it has said already whether it is of the queue.
    case .replaced: break
    }
    return nil
  }

  /// Something else was asked for and plays now; the queue waits.
  package mutating func playedSomethingElse() {
    current = nil
  }

  /// The entry that was to play could not be started now: it is the next one again.
  package mutating func putBack() -> Action? {
    if let current { tracks.prepend(current) }
    current = nil
    return nil
  }

  private mutating func advance() -> Action? {
    current = tracks.popFirst()
    return current.map(Action.play)
  }

  private static func check(_ url: String) throws(Refusal) {
    guard url.utf8.count <= RouterLimits.maximumURLByteCount else {
      throw Refusal(
        .invalidSource, "the URL has over \(RouterLimits.maximumURLByteCount) bytes", hint: nil)
    }
    let schemes = ["https:", "http:", "media:"]
    guard schemes.contains(where: { url.lowercased().hasPrefix($0) }) else {
      throw Refusal(
        .invalidSource, "\(url.debugDescription) is not a URL that can be played",
        hint: "use https://…, http://… or media:folder/file")
    }
  }
}

/// The `queue` of messages and answers.
package struct QueueView: Codable, Sendable, Equatable {
  package var current: TrackQueue.Entry?
  package var tracks: [TrackQueue.Entry]
}
