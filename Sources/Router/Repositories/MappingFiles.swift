import Glibc
import Logging
import ServiceSupport
import Synchronization
import WireProtocol

/// The repositories' own mapping files, `ID.json` in one folder. A file is read when it has changed; while one is
/// broken, the standard mapping is used.
package final class MappingFiles: Sendable {
  /// What a repository's file says.
  package struct Reading: Sendable, Equatable {
    package var mapping = MusicMapping.standard
    /// What is wrong with the file, in one line.
    package var problem: String?
  }

  /// What changes when a file does.
  private struct Version: Equatable {
    var fileNumber: UInt64
    var byteCount: Int
    var seconds: Int
    var nanoseconds: Int
  }

  private struct CacheEntry {
    var version: Version?
    var reading: Reading
  }

  private let folder: String?
  private let logger: Logger
  private let cached = Mutex<[SessionID: CacheEntry]>([:])

  /// - Parameter folder: nil for none, where all repositories have the standard.
  package init(folder: String?, logger: Logger) {
    self.folder = folder
    self.logger = logger
  }

  /// Looks at the file, and reads it if it is another than last time. Touches the disk.
  package func read(_ repository: SessionID) -> Reading {
    guard let folder else { return Reading() }
    let path = "\(folder)/\(repository).json"
    let version = Self.version(of: path)
    if let known = cached.withLock({ $0[repository] }), known.version == version { return known.reading }
    let reading = version == nil ? Reading() : Self.read(path)
    cached.withLock { $0[repository] = CacheEntry(version: version, reading: reading) }
    if let problem = reading.problem {
      logger.warning(
        "\(problem); the standard mapping is used", metadata: ["session": "\(repository)"])
    }
    return reading
  }

  /// Forgets a repository that no longer exists.
  func forget(_ repository: SessionID) {
    cached.withLock { $0[repository] = nil }
  }

  private static func version(of path: String) -> Version? {
    var status = stat()
    guard stat(path, &status) == 0 else { return nil }
    return Version(
      fileNumber: UInt64(status.st_ino), byteCount: Int(status.st_size), seconds: Int(status.st_mtim.tv_sec),
      nanoseconds: Int(status.st_mtim.tv_nsec))
  }

  private static func read(_ path: String) -> Reading {
    do {
      return Reading(mapping: try MusicMapping(json: bytes(of: path)))
    } catch {
      return Reading(problem: "\(path): \(error)")
    }
  }

  private struct ReadError: Error, CustomStringConvertible {
    let description: String
  }

  private static func bytes(of path: String) throws(ReadError) -> [UInt8] {
    // Not waiting for the other end of a pipe, which is refused.
    let file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)
    guard file >= 0 else { throw ReadError(description: errorText(errno)) }
    defer { close(file) }
    var status = stat()
    guard fstat(file, &status) == 0, status.st_mode & S_IFMT == S_IFREG else {
      throw ReadError(description: "no regular file")
    }
    // One byte more than is allowed, so that what is too long is seen to be.
    var bytes = [UInt8](repeating: 0, count: MusicMapping.maximumByteCount + 1)
    let count = Glibc.read(file, &bytes, bytes.count)
    guard count >= 0 else { throw ReadError(description: errorText(errno)) }
    return Array(bytes.prefix(count))
  }
}
