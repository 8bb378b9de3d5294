import Foundation
import RouterCore
import Testing
import WireProtocol

@Suite struct `A queue` {
  private func track(_ name: String) -> QueuedTrack { QueuedTrack(url: "media:" + name) }

  /// A queue whose session is busy, with these tracks waiting.
  private func waiting(_ names: String...) throws -> TrackQueue {
    var queue = TrackQueue()
    _ = try queue.add(names.map(track), isSessionIdle: false)
    return queue
  }

  /// A queue that plays the first of these, with the others waiting.
  private func playing(_ names: String..., loop: LoopMode = .off) throws -> TrackQueue {
    var queue = TrackQueue()
    queue.setLoop(loop)
    _ = try queue.add(names.map(track), isSessionIdle: true)
    return queue
  }

  private func names(_ queue: TrackQueue) -> String {
    queue.waiting.map { String($0.entry.track.url.dropFirst(6)) }.joined()
  }

  private func name(_ entry: QueueEntry?) -> String? { entry.map { String($0.track.url.dropFirst(6)) } }

  private func name(_ action: TrackQueue.Action?) -> String? {
    if case .play(let entry) = action { name(entry) } else { nil }
  }

  /// `#expect` calls nothing that changes its subject.
  private func didAdvance(_ queue: inout TrackQueue, _ id: String) -> Bool { queue.didAdvance(to: id) }

  // MARK: Adding and removing

  @Test func `plays the first track at once when the session is idle`() throws {
    var queue = TrackQueue()
    let (added, action) = try queue.add([track("a"), track("b")], isSessionIdle: true)
    #expect(added == ["1", "2"])
    #expect(action == .play(QueueEntry(id: "1", track("a"))))
    #expect(name(queue.current) == "a")
    #expect(names(queue) == "b")
  }

  @Test func `goes on with what waited longest when an idle session gets one more`() throws {
    var queue = try waiting("a")
    #expect(name(try queue.add([track("b")], isSessionIdle: true).action) == "a")
    #expect(names(queue) == "b")
  }

  @Test(arguments: [
    (TrackQueue.Place.end, "abcxy"), (.index(0), "xyabc"), (.index(2), "abxyc"), (.index(9), "abcxy"),
  ])
  func `takes tracks anywhere`(_ place: TrackQueue.Place, _ order: String) throws {
    var queue = try waiting("a", "b", "c")
    _ = try queue.add([track("x"), track("y")], at: place, isSessionIdle: false)
    #expect(names(queue) == order)
  }

  @Test(arguments: [("1", 2, "bca"), ("3", 0, "cab"), ("2", 1, "abc"), ("1", 99, "bca")])
  func `moves one that waits`(_ id: String, _ position: Int, _ order: String) throws {
    var queue = try waiting("a", "b", "c")
    try queue.move(id: id, to: position)
    #expect(names(queue) == order)
  }

  @Test func `removes a waiting entry, and neither a stranger nor the current one`() throws {
    var queue = try playing("a", "b", "c")
    try queue.remove(id: "2")
    #expect(names(queue) == "c")
    #expect(throws: RequestError.self) { try queue.remove(id: "2") }
    #expect(throws: RequestError.self) { try queue.remove(id: "1") }
    #expect(name(queue.current) == "a")
  }

  @Test func `shuffles what waits and loses nothing`() throws {
    var queue = TrackQueue()
    _ = try queue.add((0..<200).map { track("\($0)") }, isSessionIdle: true)
    let before = queue.waiting.map(\.entry.id)
    queue.shuffle()
    #expect(queue.waiting.map(\.entry.id) != before)
    #expect(Set(queue.waiting.map(\.entry.id)) == Set(before))
    #expect(queue.current?.id == "1")
  }

  @Test func `never gives an entry the name of one that is gone`() throws {
    var queue = try waiting("a", "b")
    queue.clear()
    #expect(try queue.add([track("c")], isSessionIdle: false).added == ["3"])
  }

  @Test func `holds ten thousand tracks and refuses one more`() throws {
    var queue = TrackQueue()
    _ = try queue.add(Array(repeating: track("a"), count: 10_000), isSessionIdle: false)
    let requestError = #expect(throws: RequestError.self) {
      try queue.add([track("a")], isSessionIdle: false)
    }
    #expect(requestError?.report.code == .queueFull)
    #expect(queue.waiting.count == 10_000)
  }

  @Test(arguments: [
    "", "a.flac", "file:///etc/passwd", "ftp://x/a", "media:" + String(repeating: "a", count: 4_096),
  ])
  func `refuses what cannot be played`(_ url: String) {
    let requestError = #expect(throws: RequestError.self) { try QueuedTrack(url: url).checked() }
    #expect(requestError?.report.code == .invalidSource)
  }

  @Test func `cuts what is too long and leaves out what is no picture`() throws {
    var long = QueuedTrack(url: "media:a", title: String(repeating: "t", count: 1_000))
    long.artwork = "javascript:alert(1)"
    let checked = try long.checked()
    #expect(checked.title?.count == 200)
    #expect(checked.artwork == nil)
  }

  @Test(arguments: [
    (-1, nil), (0, 0), (4_294_967_295, 4_294_967_295), (4_294_967_296, nil), (.max, nil), (.min, nil),
  ])
  func `leaves out what no track lasts`(_ milliseconds: Int, _ expected: Int?) throws {
    var track = QueuedTrack(url: "media:a")
    track.durationMilliseconds = milliseconds
    #expect(try track.checked().durationMilliseconds == expected)
  }

  @Test(arguments: [("1500", 1_500 as Int?), ("1500.4", 1_500), ("1e300", nil), ("null", nil)])
  func `takes a duration as clients count it`(_ text: String, _ milliseconds: Int?) throws {
    let json = #"{"url":"media:a","duration_ms":\#(text)}"#
    #expect(
      try JSONDecoder().decode(QueuedTrack.self, from: Data(json.utf8)).durationMilliseconds == milliseconds)
  }

  // MARK: Going on

  @Test(arguments: [
    (EngineEvent.EndReason.finished, true), (.loadFailed, true), (.stopped, false), (.replaced, false),
    (.cleanup, false),
  ])
  func `goes on after an end by itself only`(_ reason: EngineEvent.EndReason, _ hasMore: Bool) throws {
    var queue = try playing("a", "b")
    #expect(name(queue.ended(reason)) == (hasMore ? "b" : nil))
    #expect(names(queue) == (hasMore ? "" : "b"))
  }

  @Test func `has nothing current after its last track, and remembers it`() throws {
    var queue = try playing("a")
    #expect(queue.ended(.finished) == nil)
    #expect(queue.isEmpty)
    #expect(queue.history.map(\.id) == ["1"])
  }

  @Test func `skips to the next track and stops after the last`() throws {
    var queue = try waiting("a")
    #expect(name(try queue.skip(isSessionIdle: false)) == "a")
    #expect(try queue.skip(isSessionIdle: false) == .stop)
    #expect(throws: RequestError.self) { try queue.skip(isSessionIdle: true) }
  }

  @Test func `skips to one that waits, and the others go on waiting`() throws {
    var queue = try playing("a", "b", "c", "d")
    #expect(name(try queue.skip(to: "3")) == "c")
    #expect(names(queue) == "bd")
    #expect(queue.history.map(\.id) == ["1"])
    #expect(throws: RequestError.self) { try queue.skip(to: "3") }
  }

  @Test func `goes back through what has played, and forth again`() throws {
    var queue = try playing("a", "b", "c")
    _ = queue.ended(.finished)
    _ = queue.ended(.finished)
    #expect(name(try queue.previous()) == "b")
    #expect(name(try queue.previous()) == "a")
    #expect(names(queue) == "bc")
    #expect(throws: RequestError.self) { try queue.previous() }
    #expect(name(queue.ended(.finished)) == "b")
  }

  @Test func `plays one track again and again, until it is skipped or fails`() throws {
    var queue = try playing("a", "b", "c", loop: .track)
    #expect(name(queue.ended(.finished)) == "a")
    #expect(queue.history.isEmpty)
    #expect(name(try queue.skip(isSessionIdle: false)) == "b")
    #expect(name(queue.ended(.loadFailed)) == "c")
  }

  @Test func `plays all tracks round and round, without those that fail`() throws {
    var queue = try playing("a", "b", "c", loop: .queue)
    #expect(name(queue.ended(.finished)) == "b")
    #expect(name(queue.ended(.loadFailed)) == "c")
    #expect(name(queue.ended(.finished)) == "a")
    #expect(names(queue) == "c")
    #expect(name(try queue.previous()) == "c")
    #expect(names(queue) == "a")
  }

  @Test func `ends where all of a loop fail`() throws {
    var queue = try playing("a", "b", loop: .queue)
    #expect(name(queue.ended(.loadFailed)) == "b")
    #expect(queue.ended(.loadFailed) == nil)
  }

  @Test(arguments: [
    (LoopMode.off, "b" as String?), (.track, "a"), (.queue, "b"),
  ])
  func `says what follows`(_ loop: LoopMode, _ expected: String?) throws {
    var queue = try playing("a", "b", loop: loop)
    #expect(name(queue.following) == expected)
    #expect(name(queue.ended(.finished)) == expected)
  }

  @Test func `follows an engine that has gone on by itself`() throws {
    var queue = try playing("a", "b", "c")
    #expect(didAdvance(&queue, "2"))
    #expect(name(queue.current) == "b")
    #expect(didAdvance(&queue, "2"))
    #expect(queue.history.count == 1)
    #expect(!didAdvance(&queue, "9"))
  }

  @Test func `waits while something else plays`() throws {
    var queue = try playing("a", "b")
    let entry = queue.newEntry(track("x"))
    #expect(name(queue.current) == "a")
    queue.nowPlays(entry)
    #expect(name(queue.current) == "x")
    #expect(names(queue) == "b")
    #expect(name(queue.ended(.finished)) == "b")
  }

  @Test func `waits while what plays is nothing that it could hold`() throws {
    var queue = try playing("a", "b")
    queue.nowPlaysNothing()
    #expect(queue.current == nil && names(queue) == "b" && queue.history.map(\.track.url) == ["media:a"])
    #expect(name(queue.ended(.finished)) == "b")
  }

  @Test func `keeps a hundred that have played`() throws {
    var queue = TrackQueue()
    _ = try queue.add((1...150).map { track("\($0)") }, isSessionIdle: true)
    for _ in 0..<140 { _ = queue.ended(.finished) }
    #expect(queue.history.count == 100)
    #expect(queue.historyView(limit: 2).tracks.map(\.id) == ["140", "139"])
  }

  @Test func `shows itself in pages`() throws {
    var queue = TrackQueue()
    _ = try queue.add((1...250).map { track("\($0)") }, isSessionIdle: true)
    let page = queue.view(QueuePage(offset: 200, limit: 100))
    #expect(page.tracks.map(\.id) == (202...250).map(String.init))
    #expect(page.total == 249)
    #expect(queue.view().tracks.count == 100)
  }
}
