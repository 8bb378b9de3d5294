import RouterCore
import Testing
import WireProtocol

@Suite struct `A queue` {
  /// A queue whose session is busy, with these tracks waiting.
  private func waiting(_ urls: String...) throws -> TrackQueue {
    var queue = TrackQueue()
    for url in urls { _ = try queue.add(url: url, isSessionIdle: false) }
    return queue
  }

  private func urls(_ queue: TrackQueue) -> [String] { queue.tracks.map(\.url) }

  @Test func `plays the first track at once when the session is idle`() throws {
    var queue = TrackQueue()
    let action = try queue.add(url: "media:a", isSessionIdle: true)
    #expect(action == .play(TrackQueue.Entry(id: "1", url: "media:a")))
    #expect(queue.current?.url == "media:a")
    #expect(queue.tracks.isEmpty)
  }

  @Test func `keeps tracks in order while the session plays`() throws {
    let queue = try waiting("media:a", "media:b", "media:c")
    #expect(urls(queue) == ["media:a", "media:b", "media:c"])
    #expect(queue.current == nil)
  }

  @Test func `goes on with what waited longest when an idle session gets one more`() throws {
    var queue = try waiting("media:a")
    let action = try queue.add(url: "media:b", isSessionIdle: true)
    #expect(action == .play(TrackQueue.Entry(id: "1", url: "media:a")))
    #expect(urls(queue) == ["media:b"])
  }

  @Test(arguments: [
    (EngineEvent.EndReason.finished, true), (.loadFailed, true), (.stopped, false), (.replaced, false),
    (.cleanup, false),
  ])
  func `goes on after an end by itself only`(_ reason: EngineEvent.EndReason, _ goesOn: Bool) throws {
    var queue = TrackQueue()
    _ = try queue.add(url: "media:a", isSessionIdle: true)
    _ = try queue.add(url: "media:b", isSessionIdle: false)
    let action = queue.ended(reason)
    #expect((action == .play(TrackQueue.Entry(id: "2", url: "media:b"))) == goesOn)
    #expect((action == nil) == !goesOn)
    #expect(urls(queue) == (goesOn ? [] : ["media:b"]))
  }

  @Test func `has nothing current after its last track`() throws {
    var queue = TrackQueue()
    _ = try queue.add(url: "media:a", isSessionIdle: true)
    #expect(queue.ended(.finished) == nil)
    #expect(queue.current == nil)
    #expect(queue.isEmpty)
  }

  @Test func `skips to the next track and stops after the last`() throws {
    var queue = try waiting("media:a")
    #expect(try queue.skip(isSessionIdle: false) == .play(TrackQueue.Entry(id: "1", url: "media:a")))
    #expect(try queue.skip(isSessionIdle: false) == .stop)
    #expect(throws: Refusal.self) { try queue.skip(isSessionIdle: true) }
  }

  @Test func `removes a waiting entry, and neither a stranger nor the current one`() throws {
    var queue = TrackQueue()
    _ = try queue.add(url: "media:a", isSessionIdle: true)
    _ = try queue.add(url: "media:b", isSessionIdle: false)
    _ = try queue.add(url: "media:c", isSessionIdle: false)
    try queue.remove(id: "2")
    #expect(urls(queue) == ["media:c"])
    #expect(throws: Refusal.self) { try queue.remove(id: "2") }
    #expect(throws: Refusal.self) { try queue.remove(id: "1") }
    #expect(queue.current?.id == "1")
  }

  @Test func `waits while something else plays`() throws {
    var queue = TrackQueue()
    _ = try queue.add(url: "media:a", isSessionIdle: true)
    _ = try queue.add(url: "media:b", isSessionIdle: false)
    queue.playedSomethingElse()
    #expect(queue.current == nil)
    #expect(urls(queue) == ["media:b"])
  }

  @Test func `never gives an entry the name of one that is gone`() throws {
    var queue = try waiting("media:a", "media:b")
    queue.clear()
    _ = try queue.add(url: "media:c", isSessionIdle: false)
    #expect(queue.tracks.map(\.id) == ["3"])
  }

  @Test func `holds a thousand tracks and refuses one more`() throws {
    var queue = TrackQueue()
    for _ in 0..<RouterLimits.maximumQueueEntries { _ = try queue.add(url: "media:a", isSessionIdle: false) }
    let refusal = #expect(throws: Refusal.self) { try queue.add(url: "media:a", isSessionIdle: false) }
    #expect(refusal?.report.code == .queueFull)
    #expect(queue.tracks.count == 1_000)
  }

  @Test(arguments: [
    "", "a.flac", "file:///etc/passwd", "ftp://x/a", "media:" + String(repeating: "a", count: 4_096),
  ])
  func `refuses what cannot be played`(_ url: String) {
    var queue = TrackQueue()
    let refusal = #expect(throws: Refusal.self) { try queue.add(url: url, isSessionIdle: true) }
    #expect(refusal?.report.code == .invalidSource)
    #expect(queue.isEmpty)
  }
}
