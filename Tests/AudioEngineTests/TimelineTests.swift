import AudioEngineCore
import Dispatch
import Synchronization
import Testing
import WireProtocol

/// A packet whose length and bytes follow from its index.
private func packet(_ index: Int) -> [UInt8] {
  [UInt8](repeating: UInt8(index % 251), count: 1 + index * 7919 % 1276)
}

private func makeTimeline(start: Int = 0, packets: Int) -> Timeline {
  let timeline = Timeline(key: TrackKey(source: .file(path: "a"), startMilliseconds: start))
  var writer = Timeline.Writer(timeline)
  for index in 0..<packets { packet(index).withUnsafeBytes { writer.append($0) } }
  return timeline
}

private func read(_ cursor: inout Timeline.Cursor) -> [UInt8]? {
  var bytes: [UInt8]?
  return cursor.withNext { bytes = Array($0) } ? bytes : nil
}

@Suite struct TimelineTests {
  @Test func `a cursor reads every packet as it was written, across segments`() {
    let timeline = makeTimeline(packets: 1_000)
    var cursor = Timeline.Cursor(timeline)
    for index in 0..<1_000 { #expect(read(&cursor) == packet(index)) }
    #expect(read(&cursor) == nil)
  }

  @Test func `a cursor can be put anywhere`() {
    let timeline = makeTimeline(packets: 500)
    var cursor = Timeline.Cursor(timeline)
    for index in [499, 0, 250, 249, 251, 17, 498] {
      cursor.move(to: index)
      #expect(read(&cursor) == packet(index))
      #expect(cursor.positionMilliseconds == (index + 1) * 20)
    }
  }

  @Test func `a cursor beyond what is produced waits there`() {
    let timeline = Timeline(key: TrackKey(source: .file(path: "a")))
    var writer = Timeline.Writer(timeline)
    var cursor = Timeline.Cursor(timeline, index: 2)
    for index in 0..<2 {
      packet(index).withUnsafeBytes { writer.append($0) }
      #expect(read(&cursor) == nil)
    }
    packet(2).withUnsafeBytes { writer.append($0) }
    #expect(read(&cursor) == packet(2))
  }

  @Test func `what is trimmed is freed, and what is ahead stays`() {
    let timeline = makeTimeline(packets: 1_000)
    let before = timeline.byteCount
    var cursor = Timeline.Cursor(timeline, index: 900)
    timeline.trim(before: 900)
    #expect(timeline.byteCount < before / 5)
    for index in 900..<1_000 { #expect(read(&cursor) == packet(index)) }
    #expect(!timeline.covers(positionMilliseconds: 0))
    #expect(timeline.covers(positionMilliseconds: 900 * 20))
  }

  @Test func `a cursor at the end of a segment outlives a trim at its place`() {
    let timeline = makeTimeline(packets: 1_000)
    var cursor = Timeline.Cursor(timeline)
    for index in 0..<1_000 {
      timeline.trim(before: index)
      // As large as a segment: it takes the memory of one that was just freed, and spoils it.
      let spoil = [UInt8](repeating: 0xAA, count: 16_340)
      #expect(read(&cursor) == packet(index) && spoil.last == 0xAA)
    }
  }

  @Test func `positions count from the timeline's own start`() {
    let timeline = makeTimeline(start: 10_000, packets: 10)
    #expect(timeline.packetIndex(atMilliseconds: 10_040) == 2)
    #expect(timeline.packetIndex(atMilliseconds: 9_999) < 0)
    #expect(timeline.position(ofPacket: 3) == 10_060)
    #expect(!timeline.covers(positionMilliseconds: 9_980))
  }

  @Test func `a reader beside the writer sees whole packets only`() {
    let timeline = Timeline(key: TrackKey(source: .file(path: "a")))
    let count = 100_000
    DispatchQueue.global().async {
      var writer = Timeline.Writer(timeline)
      for index in 0..<count { packet(index).withUnsafeBytes { writer.append($0) } }
    }
    var cursor = Timeline.Cursor(timeline)
    var index = 0
    var wrong = 0
    while index < count {
      guard let bytes = read(&cursor) else { continue }
      if bytes != packet(index) { wrong += 1 }
      index += 1
      if index % 1_000 == 0 { timeline.trim(before: index) }
    }
    #expect(wrong == 0)
  }
}

/// Of timelines that say nothing of their source.
private let anyFreshness = SourceFreshness(mediaRoot: nil, webCacheSeconds: 600)

@Suite struct TimelineStoreTests {
  /// A store whose productions are done at once, each of `packets` packets.
  private func makeStore(limit: Int, packets: Int, made: @escaping @Sendable () -> Void = {}) -> TimelineStore
  {
    TimelineStore(cacheByteLimit: limit, freshness: anyFreshness) { timeline, store in
      made()
      store.countProduction()
      var writer = Timeline.Writer(timeline)
      for index in 0..<packets { packet(index).withUnsafeBytes { writer.append($0) } }
      timeline.becomeReady(
        TrackDetails(title: nil, durationMilliseconds: nil, codec: "x", isPassthrough: false))
      timeline.finish(failure: nil)
    }
  }

  @Test func `equal tracks share one production, even after the last listener left`() throws {
    let productions = Atomic<Int>(0)
    let store = makeStore(limit: 1 << 20, packets: 10) { productions.add(1, ordering: .relaxed) }
    let key = TrackKey(source: .file(path: "a"))
    let first = try store.acquire(key)
    let second = try store.acquire(key)
    #expect(first.timeline === second.timeline)
    _ = consume first
    _ = consume second
    store.finishReleases()
    _ = try store.acquire(key)
    #expect(productions.load(ordering: .relaxed) == 1)
    _ = try store.acquire(TrackKey(source: .file(path: "a"), volume: 0.5))
    #expect(productions.load(ordering: .relaxed) == 2)
  }

  @Test func `a place inside a timeline there is needs no new one`() throws {
    let store = makeStore(limit: 1 << 20, packets: 100)
    let whole = try store.acquire(TrackKey(source: .file(path: "a")))
    let inside = try store.acquire(TrackKey(source: .file(path: "a"), startMilliseconds: 1_000))
    #expect(inside.timeline === whole.timeline)
    let behind = try store.acquire(TrackKey(source: .file(path: "a"), startMilliseconds: 5_000))
    #expect(behind.timeline !== whole.timeline)
  }

  @Test func `the least recently used timeline is forgotten first`() throws {
    // 40 packets of up to 1,276 bytes are two or three segments of 16 KiB.
    let store = makeStore(limit: 150_000, packets: 40)
    for name in ["a", "b", "c", "a", "d", "e"] {
      _ = try store.acquire(TrackKey(source: .file(path: name)))
      store.finishReleases()
    }
    let before = store.statistics
    #expect(before.bytes < 150_000)
    _ = try store.acquire(TrackKey(source: .file(path: "b")))
    #expect(store.statistics.productions == before.productions + 1)
  }

  @Test func `a production that nobody waits for is stopped`() throws {
    let seen = Mutex<Timeline?>(nil)
    let store = TimelineStore(cacheByteLimit: 1 << 20, freshness: anyFreshness) { timeline, _ in
      seen.withLock { $0 = timeline }
    }
    let lease = try store.acquire(TrackKey(source: .file(path: "a")))
    let timeline = try #require(seen.withLock { $0 })
    #expect(!timeline.isCancelled)
    _ = consume lease
    store.finishReleases()
    #expect(timeline.isCancelled)
    #expect(store.statistics.timelines == 0)
  }

  @Test func `a refused production leaves nothing behind`() {
    let store = TimelineStore(cacheByteLimit: 1 << 20, freshness: anyFreshness) {
      (_, _) throws(ErrorReport) in
      throw ErrorReport(.workersExhausted, "full")
    }
    let error = #expect(throws: ErrorReport.self) { try store.acquire(TrackKey(source: .file(path: "a"))) }
    #expect(error?.code == .workersExhausted)
    store.finishReleases()
    #expect(store.statistics.timelines == 0)
  }
}
