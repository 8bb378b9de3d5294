import Glibc

/// Which bytes a source was when it was read: what is kept of it is played again only while it is those.
package enum SourceIdentity: Codable, Sendable, Equatable {
  /// Taken with the open descriptor: a file put in its place later is another.
  case file(device: UInt64, inode: UInt64, byteCount: Int64, modifiedSeconds: Int, modifiedNanoseconds: Int)
  /// What cannot be asked for cheaply is trusted for a time. In seconds since 1970.
  case fetched(atSeconds: Int)
  /// The source is its own content.
  case computed

  init(_ status: stat) {
    self = .file(
      device: UInt64(status.st_dev), inode: UInt64(status.st_ino), byteCount: Int64(status.st_size),
      modifiedSeconds: status.st_mtim.tv_sec, modifiedNanoseconds: status.st_mtim.tv_nsec)
  }

  static var fetchedNow: SourceIdentity { .fetched(atSeconds: Glibc.time(nil)) }
}

/// Whether what is kept of a source is still the source.
package struct SourceFreshness: Sendable {
  private let mediaRoot: MediaRoot?
  private let webCacheSeconds: Int

  /// - Parameter webCacheSeconds: how long what came from the web is played again without a look at it.
  package init(mediaRoot: MediaRoot?, webCacheSeconds: Int) {
    self.mediaRoot = mediaRoot
    self.webCacheSeconds = webCacheSeconds
  }

  /// Looks at the source once, and says of an identity whether it is the source's own. May block for as long
  /// as a `stat` does.
  package func check(of source: MediaSource) -> (SourceIdentity) -> Bool {
    switch source {
    case .file(let path):
      let current = mediaRoot?.identity(of: path)
      return { $0 == current }
    case .score: return { _ in true }
    case .web: break
    }
    let now = Glibc.time(nil)
    return { [webCacheSeconds] identity in
      guard case .fetched(let then) = identity else { return false }
      // A clock that was set back makes everything stale.
      return (0..<webCacheSeconds).contains(now - then)
    }
  }
}
