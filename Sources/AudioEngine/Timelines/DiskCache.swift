import Crypto
import Glibc
import Logging
import ServiceSupport
import Synchronization
import WireProtocol

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// Complete timelines as files in one folder, within a byte budget, so that an engine that starts again finds
/// them (docs/decisions/0009-disk-cache.md). Used by worker threads.
///
/// A file's name is a hash of its key and settings: nothing that a person typed becomes a path.
package final class DiskCache: Sendable {
  fileprivate struct File {
    var byteCount: Int
    /// Grows with every use: the smallest is the least recently used.
    var lastUse: UInt64
  }

  fileprivate struct State {
    var files: [String: File] = [:]
    var uses: UInt64 = 0
    var statistics = Statistics()
  }

  /// Figures for `/metrics`.
  package struct Statistics: Sendable {
    package var files = 0
    package var bytes = 0
    package var hits = 0
    package var misses = 0
    package var writes = 0
    /// Files that could not be written.
    package var failures = 0
    /// Files deleted for room.
    package var evictions = 0
    /// Files deleted because they were broken, or their source has become another.
    package var rejections = 0
  }

  private static let suffix = ".track"
  /// A file that is being written; what a crash left of one is deleted at the next start.
  private static let unfinishedSuffix = ".part"
  private static let lockName = "lock"

  private let directory: String
  private let byteLimit: Int
  private let encoding: EncodingSettings
  private let freshness: SourceFreshness
  private let logger: Logger
  private let lockDescriptor: Int32
  private let state = Mutex(State())
  private let writes = Atomic<UInt64>(0)

  /// Finds what an earlier run left, and takes the folder for this process alone.
  ///
  /// - Parameters:
  ///   - directory: made where it does not exist; files of other names in it are left alone.
  ///   - byteLimit: what all files together may have.
  /// - Throws: `internal` where the folder cannot be used, or another engine uses it.
  package init(
    directory: String, byteLimit: Int, encoding: EncodingSettings, freshness: SourceFreshness, logger: Logger
  ) throws(ErrorReport) {
    self.directory = directory
    self.byteLimit = byteLimit
    self.encoding = encoding
    self.freshness = freshness
    self.logger = logger
    lockDescriptor = try Self.lock(directory)
    let found = try Self.scan(directory)
    state.withLock { state in
      for file in found {
        state.uses += 1
        state.insert(file.name, byteCount: file.byteCount)
      }
    }
    evict(for: 0)
  }

  deinit { close(lockDescriptor) }

  package var statistics: Statistics { state.withLock { $0.statistics } }

  // MARK: Reading

  /// A reader for a track there is: whole, of these settings, and of a source that has not become another.
  package func find(_ key: TrackKey) -> CachedTrackReader? {
    let key = key.family
    guard let name = name(of: key) else { return nil }
    guard state.withLock({ $0.files[name] != nil }) else {
      state.withLock { $0.statistics.misses += 1 }
      return nil
    }
    do throws(UnfitTrackFile) {
      let descriptor = open(path(name), O_RDONLY | O_CLOEXEC | O_NOFOLLOW)
      guard descriptor >= 0 else { throw UnfitTrackFile(errorText(errno)) }
      let reader = try CachedTrackReader(descriptor: descriptor)
      guard reader.header.key == key, reader.header.encoding == encoding else {
        throw UnfitTrackFile("it is another track's")
      }
      guard freshness.check(of: key.source)(reader.header.identity) else {
        throw UnfitTrackFile("its source is another by now, or too old")
      }
      noteUse(of: name)
      return reader
    } catch {
      reject(name, key, error)
      return nil
    }
  }

  private func noteUse(of name: String) {
    // The next run knows by it what was used last.
    utimensat(AT_FDCWD, path(name), nil, 0)
    state.withLock { state in
      state.uses += 1
      state.files[name]?.lastUse = state.uses
      state.statistics.hits += 1
    }
  }

  private func reject(_ name: String, _ key: TrackKey, _ fault: UnfitTrackFile) {
    logger.info("the disk cache's \(name) of \(key.source) is not played: \(fault.reason)")
    unlink(path(name))
    state.withLock { state in
      state.remove(name)
      state.statistics.rejections += 1
      state.statistics.misses += 1
    }
  }

  // MARK: Writing

  /// Writes a timeline that its own producer has completed. Blocks; a failure is logged and counted, and
  /// harms nothing else.
  package func store(_ timeline: Timeline) {
    guard timeline.key == timeline.key.family, !timeline.isUncacheable, timeline.phase == .complete,
      let details = timeline.track, let identity = timeline.identity, let name = name(of: timeline.key),
      timeline.byteCount <= byteLimit,
      // What was changed while it was read is nothing to keep.
      freshness.check(of: timeline.key.source)(identity)
    else { return }
    let header = TrackFileHeader(
      key: timeline.key, encoding: encoding, identity: identity, details: details,
      packetCount: timeline.packetCount)
    evict(for: timeline.byteCount)
    do throws(ErrorReport) {
      let byteCount = try write(header, timeline, as: name)
      state.withLock { state in
        state.uses += 1
        state.insert(name, byteCount: byteCount)
        state.statistics.writes += 1
      }
      evict(for: 0)
    } catch {
      logger.warning("the disk cache cannot keep \(timeline.key.source): \(error.message)")
      state.withLock { $0.statistics.failures += 1 }
    }
  }

  /// Under another name until it is whole.
  private func write(
    _ header: TrackFileHeader, _ timeline: Timeline, as name: String
  ) throws(ErrorReport) -> Int {
    let number = writes.add(1, ordering: .relaxed).newValue
    let unfinished = path("\(name).\(number)\(Self.unfinishedSuffix)")
    let descriptor = open(unfinished, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0o600)
    guard descriptor >= 0 else { throw ErrorReport(.internal, errorText(errno)) }
    defer { close(descriptor) }
    do throws(ErrorReport) {
      let byteCount = try TrackFile.write(header, packetsOf: timeline, to: descriptor)
      guard rename(unfinished, path(name)) == 0 else { throw ErrorReport(.internal, errorText(errno)) }
      return byteCount
    } catch {
      unlink(unfinished)
      throw error
    }
  }

  /// Deletes least recently used files until there is room for so many bytes more.
  private func evict(for byteCount: Int) {
    let names = state.withLock { state in
      var names: [String] = []
      while state.statistics.bytes + byteCount > byteLimit,
        let oldest = state.files.min(by: { $0.value.lastUse < $1.value.lastUse })
      {
        state.remove(oldest.key)
        state.statistics.evictions += 1
        names.append(oldest.key)
      }
      return names
    }
    for name in names { unlink(path(name)) }
  }

  // MARK: Names

  private func path(_ name: String) -> String { "\(directory)/\(name)" }

  private func name(of key: TrackKey) -> String? {
    struct Name: Encodable {
      var key: TrackKey
      var encoding: EncodingSettings
    }
    let encoder = JSONEncoder()
    encoder.outputFormatting = .sortedKeys
    guard let text = try? encoder.encode(Name(key: key, encoding: encoding)) else { return nil }
    return SHA256.hash(data: text).map { byte in
      let digits = String(byte, radix: 16)
      return digits.count < 2 ? "0\(digits)" : digits
    }.joined() + Self.suffix
  }

  /// Whether a file is one of the cache's by its name: a hash in hexadecimal, finished or not.
  private static func isOurs(_ name: String) -> Bool {
    let hash = name.prefix { $0 != "." }
    return hash.utf8.count == 2 * SHA256.byteCount && hash.allSatisfy(\.isHexDigit)
      && (name == hash + suffix || name.hasSuffix(unfinishedSuffix))
  }

  // MARK: Starting

  private static func lock(_ directory: String) throws(ErrorReport) -> Int32 {
    func report(_ reason: String) -> ErrorReport {
      ErrorReport(
        .internal, "the cache folder \(directory) cannot be used: \(reason)",
        hint: "give another one to --cache-dir")
    }
    guard mkdir(directory, 0o700) == 0 || errno == EEXIST else { throw report(errorText(errno)) }
    let descriptor = open("\(directory)/\(lockName)", O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0o600)
    guard descriptor >= 0 else { throw report(errorText(errno)) }
    guard flock(descriptor, LOCK_EX | LOCK_NB) == 0 else {
      close(descriptor)
      throw report("another engine uses it")
    }
    return descriptor
  }

  /// What is there, the least recently used first.
  private static func scan(_ directory: String) throws(ErrorReport) -> [(name: String, byteCount: Int)] {
    guard let names = try? FileManager.default.contentsOfDirectory(atPath: directory) else {
      throw ErrorReport(
        .internal, "the cache folder \(directory) cannot be listed", hint: "give another one to --cache-dir")
    }
    var found: [(name: String, byteCount: Int, used: timespec)] = []
    for name in names where isOurs(name) {
      var status = stat()
      guard lstat("\(directory)/\(name)", &status) == 0 else { continue }
      if name.hasSuffix(suffix), status.st_mode & S_IFMT == S_IFREG {
        found.append((name, Int(status.st_size), status.st_mtim))
      } else {
        unlink("\(directory)/\(name)")
      }
    }
    found.sort { ($0.used.tv_sec, $0.used.tv_nsec) < ($1.used.tv_sec, $1.used.tv_nsec) }
    return found.map { ($0.name, $0.byteCount) }
  }
}

extension DiskCache.State {
  fileprivate mutating func insert(_ name: String, byteCount: Int) {
    remove(name)
    files[name] = DiskCache.File(byteCount: byteCount, lastUse: uses)
    statistics.files += 1
    statistics.bytes += byteCount
  }

  fileprivate mutating func remove(_ name: String) {
    guard let file = files.removeValue(forKey: name) else { return }
    statistics.files -= 1
    statistics.bytes -= file.byteCount
  }
}
