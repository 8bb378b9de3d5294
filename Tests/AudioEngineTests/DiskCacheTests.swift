import AudioEngineCore
import Foundation
import Logging
import ServiceSupport
import Testing
import WireProtocol

/// A packet whose length and bytes follow from its index.
private func packet(_ index: Int) -> [UInt8] {
  [UInt8](repeating: UInt8(index % 251), count: 1 + index * 7919 % 1276)
}

/// A folder with media and a cache, gone with the value.
private final class Folder {
  let path: String
  var cachePath: String { "\(path)/cache" }
  var tracks: [String] {
    ((try? FileManager.default.contentsOfDirectory(atPath: cachePath)) ?? []).filter {
      $0.hasSuffix(".track")
    }.map { "\(cachePath)/\($0)" }
  }

  init() throws {
    path = "/tmp/antiphon-disk-\(UUID().uuidString)"
    try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
  }

  deinit { try? FileManager.default.removeItem(atPath: path) }

  func cache(
    byteLimit: Int = 1 << 30, webCacheSeconds: Int = 600, kilobitsPerSecond: Int = 128
  ) throws -> DiskCache {
    var encoding = EncodingSettings()
    encoding.kilobitsPerSecond = kilobitsPerSecond
    return try DiskCache(
      directory: cachePath, byteLimit: byteLimit, encoding: encoding,
      freshness: SourceFreshness(mediaRoot: try MediaRoot(path), webCacheSeconds: webCacheSeconds),
      logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() })
  }
}

private func key(_ name: String = "a", volume: Double = 1) -> TrackKey {
  TrackKey(source: .web(url: "http://example.com/\(name)"), volume: volume)
}

private func makeTimeline(
  _ key: TrackKey = key(), packets: Int = 1_000, title: String? = "ü\"\n", age: Int = 0
) -> Timeline {
  let timeline = Timeline(key: key)
  // By the clock that the cache looks at: `Date` may be in the next second already.
  timeline.becomeOpen(.fetched(atSeconds: time(nil) - age))
  var writer = Timeline.Writer(timeline)
  for index in 0..<packets { packet(index).withUnsafeBytes { writer.append($0) } }
  timeline.becomeReady(
    TrackDetails(title: title, durationMilliseconds: packets * 20, codec: "flac", isPassthrough: false))
  timeline.finish(failure: nil)
  return timeline
}

/// The packets of a track there is; nil where there is none that may be played.
private func packets(_ cache: DiskCache, _ key: TrackKey) throws -> [[UInt8]]? {
  guard var reader = cache.find(key) else { return nil }
  var packets: [[UInt8]] = []
  while try reader.withNext({ packets.append(Array($0)) }) {}
  return packets
}

@Suite struct DiskCacheTests {
  @Test func `a track is found again as it was, by another run`() throws {
    let folder = try Folder()
    try folder.cache().store(makeTimeline())
    let cache = try folder.cache()
    #expect(try packets(cache, key()) == (0..<1_000).map(packet))
    let details = try #require(cache.find(key())?.header.details)
    #expect(
      details
        == TrackDetails(title: "ü\"\n", durationMilliseconds: 20_000, codec: "flac", isPassthrough: false))
    #expect(cache.statistics.hits == 2)
    #expect(cache.statistics.files == 1)
    #expect(
      try FileManager.default.attributesOfItem(atPath: folder.tracks[0])[.size] as? Int
        == cache.statistics.bytes)
    // A start in its middle is the same track's.
    let later = TrackKey(source: key().source, startMilliseconds: 4_000)
    #expect(cache.find(later)?.header.packetCount == 1_000)
  }

  @Test func `another track, volume or encoding is not found`() throws {
    let folder = try Folder()
    do {
      let cache = try folder.cache()
      cache.store(makeTimeline())
      #expect(try packets(cache, key("b")) == nil)
      #expect(try packets(cache, key(volume: 0.5)) == nil)
      #expect(cache.statistics.misses == 2)
    }
    let other = try folder.cache(kilobitsPerSecond: 64)
    #expect(try packets(other, key()) == nil)
    #expect(folder.tracks.count == 1)
  }

  @Test func `a source's name never becomes a path`() throws {
    let folder = try Folder()
    let names = ["../../x", "/etc/passwd", "a/b", String(repeating: "x", count: 4_000), "\0", "%2e%2e/"]
    let cache = try folder.cache()
    for name in names { cache.store(makeTimeline(key(name), packets: 1)) }
    #expect(cache.statistics.files == names.count)
    for track in folder.tracks {
      let name = try #require(track.split(separator: "/").last)
      #expect(name.count == 70 && name.dropLast(6).allSatisfy(\.isHexDigit), "\(name)")
    }
  }

  /// Whatever one byte of the file becomes, and wherever it ends: it is not played, and it is gone.
  @Test func `a broken file is deleted and never played`() throws {
    let folder = try Folder()
    let timeline = makeTimeline(packets: 30)
    let cache = try folder.cache()
    cache.store(timeline)
    let track = try #require(folder.tracks.first)
    let whole = try Data(contentsOf: URL(fileURLWithPath: track))
    var broken: [Data] = [Data(), Data("ANTIPHON".utf8), Data(repeating: 0xFF, count: 10_000), whole + [0]]
    for length in stride(from: 0, to: whole.count, by: 97) { broken.append(whole.prefix(length)) }
    for place in Array(0..<400) + Array(stride(from: 400, to: whole.count, by: 61)) {
      var altered = whole
      altered[place] ^= 0x01
      broken.append(altered)
    }
    for data in broken {
      try data.write(to: URL(fileURLWithPath: track))
      #expect(try packets(cache, key()) == nil)
      #expect(!FileManager.default.fileExists(atPath: track))
      // It is produced and written anew.
      cache.store(timeline)
    }
    #expect(try packets(cache, key()) == (0..<30).map(packet))
    #expect(cache.statistics.rejections == broken.count)
    #expect(cache.statistics.files == 1)
  }

  @Test func `a file of another track under its name is not played`() throws {
    let folder = try Folder()
    let cache = try folder.cache()
    cache.store(makeTimeline(key("a")))
    let first = try #require(folder.tracks.first)
    cache.store(makeTimeline(key("b")))
    let second = try #require(folder.tracks.first { $0 != first })
    try Data(contentsOf: URL(fileURLWithPath: second)).write(to: URL(fileURLWithPath: first))
    #expect(try packets(cache, key("a")) == nil)
    #expect(try packets(cache, key("b")) != nil)
  }

  @Test func `what was used least lately is deleted for room, by the next run too`() throws {
    let folder = try Folder()
    var size = 0
    do {
      let cache = try folder.cache()
      for name in ["a", "b", "c"] {
        cache.store(makeTimeline(key(name)))
        usleep(20_000)
      }
      size = cache.statistics.bytes / 3
      #expect(try packets(cache, key("a")) != nil)
    }
    // Room for two; and a timeline's memory is a little more than its file.
    let cache = try folder.cache(byteLimit: size * 5 / 2)
    #expect(cache.statistics.files == 2)
    #expect(cache.statistics.evictions == 1)
    #expect(try packets(cache, key("b")) == nil)
    #expect(try packets(cache, key("a")) != nil)
    cache.store(makeTimeline(key("d")))
    #expect(cache.statistics.bytes <= size * 5 / 2)
    #expect(try packets(cache, key("c")) == nil)
    #expect(try packets(cache, key("d")) != nil)
    #expect(folder.tracks.count == cache.statistics.files)
  }

  @Test func `what is larger than the budget, unfinished or failed is not kept`() throws {
    let folder = try Folder()
    let cache = try folder.cache(byteLimit: 100_000)
    cache.store(makeTimeline())
    cache.store(makeTimeline(TrackKey(source: key().source, startMilliseconds: 1_000), packets: 10))
    let growing = Timeline(key: key("growing"))
    growing.becomeOpen(.fetched(atSeconds: Int(Date().timeIntervalSince1970)))
    cache.store(growing)
    #expect(folder.tracks.isEmpty)
  }

  @Test func `what came from the web is played for a time`() throws {
    let folder = try Folder()
    do { try folder.cache(webCacheSeconds: 1_000).store(makeTimeline(age: 500)) }
    do { #expect(try packets(try folder.cache(webCacheSeconds: 1_000), key()) != nil) }
    #expect(try packets(try folder.cache(webCacheSeconds: 400), key()) == nil)
    #expect(folder.tracks.isEmpty)
  }

  @Test func `other files in the folder are left alone, and what a crash left is not`() throws {
    let folder = try Folder()
    _ = try folder.cache()
    let hash = String(repeating: "0a", count: 32)
    let kept = ["notes.txt", "x.track", "\(hash).txt"]
    for name in kept + ["\(hash).track.7.part"] {
      try Data([1]).write(to: URL(fileURLWithPath: "\(folder.cachePath)/\(name)"))
    }
    let cache = try folder.cache(byteLimit: 1)
    let names = try FileManager.default.contentsOfDirectory(atPath: folder.cachePath)
    #expect(Set(names) == Set(kept + ["lock"]))
    #expect(cache.statistics.files == 0)
  }

  @Test func `two engines do not share a folder`() throws {
    let folder = try Folder()
    let first = try folder.cache()
    let error = #expect(throws: ErrorReport.self) { try folder.cache() }
    #expect(error?.hint?.contains("--cache-dir") == true)
    _ = first.statistics
  }

  @Test func `a folder that cannot be written to harms nothing but the cache`() throws {
    let folder = try Folder()
    let cache = try folder.cache()
    try FileManager.default.removeItem(atPath: folder.cachePath)
    cache.store(makeTimeline())
    #expect(cache.statistics.failures == 1)
    #expect(try packets(cache, key()) == nil)
  }
}

@Suite struct SourceFreshnessTests {
  @Test func `a file put in another's place is another`() throws {
    let folder = try Folder()
    let file = URL(fileURLWithPath: "\(folder.path)/a")
    try Data([1, 2, 3]).write(to: file)
    let root = try MediaRoot(folder.path)
    let freshness = SourceFreshness(mediaRoot: root, webCacheSeconds: 600)
    let source = MediaSource.file(path: "a")
    let identity = try #require(root.identity(of: "a"))
    #expect(freshness.check(of: source)(identity))
    #expect(!freshness.check(of: .file(path: "b"))(identity))
    #expect(!freshness.check(of: .web(url: "http://a"))(identity))

    usleep(20_000)
    try Data([4, 5, 6]).write(to: file)
    #expect(!freshness.check(of: source)(identity))
    try FileManager.default.removeItem(at: file)
    #expect(!freshness.check(of: source)(identity))
  }

  @Test func `the store plays a file's old sound to nobody who asks anew`() throws {
    let folder = try Folder()
    let file = URL(fileURLWithPath: "\(folder.path)/a")
    try Data([1]).write(to: file)
    let root = try MediaRoot(folder.path)
    let freshness = SourceFreshness(mediaRoot: root, webCacheSeconds: 600)
    let store = TimelineStore(cacheByteLimit: 1 << 20, freshness: freshness) { timeline, _ in
      if let identity = root.identity(of: "a") { timeline.becomeOpen(identity) }
      var writer = Timeline.Writer(timeline)
      packet(9).withUnsafeBytes { writer.append($0) }
      timeline.becomeReady(
        TrackDetails(title: nil, durationMilliseconds: nil, codec: "x", isPassthrough: false))
      timeline.finish(failure: nil)
    }
    let key = TrackKey(source: .file(path: "a"))
    let old = try store.acquire(key)
    #expect(try store.acquire(key).timeline === old.timeline)
    usleep(20_000)
    try Data([2, 3]).write(to: file)
    let new = try store.acquire(key)
    #expect(new.timeline !== old.timeline)
    #expect(try store.acquire(key).timeline === new.timeline)
    _ = consume old
    _ = consume new
    store.finishReleases()
    // The old one went with its last listener; the new one stays.
    #expect(store.statistics.timelines == 1)
  }

  @Test func `a thousand timelines cost little to count`() throws {
    let store = TimelineStore(
      cacheByteLimit: 1 << 40, freshness: SourceFreshness(mediaRoot: nil, webCacheSeconds: 600)
    ) { timeline, _ in timeline.finish(failure: nil) }
    let leases = try (0..<1_000).map { try store.acquire(key("\($0)")) }
    let begun = MonotonicClock.nowNanoseconds
    for _ in 0..<100 { #expect(store.hasRoom(for: leases[0].timeline)) }
    let microseconds = Double(MonotonicClock.nowNanoseconds - begun) / 100 / 1_000
    // Asked once for a second of sound, which costs some 7,000 µs to make.
    #expect(microseconds < 1_000, "\(microseconds) µs")
    print("hasRoom with 1,000 timelines: \(microseconds) µs")
  }
}
