import CLinux
import Glibc
import ServiceSupport
import WireProtocol

/// The one folder below which files may be played.
package struct MediaRoot: Sendable {
  /// The folder with its own links resolved.
  package let path: String
  /// The most entries one listing shows.
  static let maximumListingCount = 2_000
  /// The most that are looked at for it: a folder may be full of links that lead out.
  private static let maximumLookedCount = 10_000
  private static let maximumListingByteCount = WireLimits.maximumEventByteCount / 2

  /// - Throws: `source_not_found` where the folder does not exist.
  package init(_ path: String) throws(ErrorReport) {
    guard let resolved = realpath(path, nil) else {
      throw ErrorReport(
        .sourceNotFound, "the media root \(path) cannot be used: \(errorText(errno))",
        hint: "give an existing folder to --media-root")
    }
    defer { free(resolved) }
    self.path = String(cString: resolved)
  }

  /// Opens a file below the root.
  ///
  /// What is checked is what was opened: the descriptor's own path after every link, so that no link and no
  /// race can lead out of the root.
  func open(_ relativePath: String) throws(ErrorReport) -> FileInput {
    let descriptor = try openDescriptor(relativePath)
    let input = FileInput(descriptor: descriptor)
    try check(descriptor, relativePath)
    var status = stat()
    guard fstat(descriptor, &status) == 0, status.st_mode & S_IFMT == S_IFREG else {
      throw ErrorReport(
        .sourceNotAudio, "media:\(relativePath.shortened) is not a file", hint: "media lists a folder",
        stage: .resolve)
    }
    guard status.st_size > 0 else {
      throw ErrorReport(
        .sourceEmpty, "media:\(relativePath.shortened) is empty: it has no bytes", stage: .resolve)
    }
    return input
  }

  /// Which bytes a path leads to now; nil where there are none.
  package func identity(of relativePath: String) -> SourceIdentity? {
    var status = stat()
    return stat("\(path)/\(relativePath)", &status) == 0 ? SourceIdentity(status) : nil
  }

  /// Lists a folder: folders first, then files, by name; what begins with a dot is left out.
  package func list(_ relativePath: String) throws(ErrorReport) -> MediaListing {
    let descriptor = try openDescriptor(relativePath)
    do {
      try check(descriptor, relativePath)
    } catch {
      close(descriptor)
      throw error
    }
    guard let directory = fdopendir(descriptor) else {
      close(descriptor)
      throw ErrorReport(.sourceNotFound, "media:\(relativePath.shortened) is not a folder", stage: .resolve)
    }
    defer { closedir(directory) }
    var entries: [MediaListing.Entry] = []
    var lookedCount = 0
    while lookedCount < Self.maximumLookedCount, let item = readdir(directory) {
      // A name that is not UTF-8 could not be written in JSON and asked for again.
      let name = withUnsafeBytes(of: item.pointee.d_name) { bytes in
        String(validating: bytes.prefix { $0 != 0 }, as: UTF8.self)
      }
      guard let name, !name.hasPrefix("."), entries.count <= Self.maximumListingCount else { continue }
      lookedCount += 1
      if let entry = entry(name, in: relativePath, descriptor: dirfd(directory)) { entries.append(entry) }
    }
    entries.sort { ($0.kind == .folder ? 0 : 1, $0.name) < ($1.kind == .folder ? 0 : 1, $1.name) }
    let shown = Self.fitting(entries.prefix(Self.maximumListingCount))
    return MediaListing(
      path: relativePath, entries: Array(shown),
      truncated: shown.count < entries.count || lookedCount == Self.maximumLookedCount)
  }

  /// As many entries as an event has room for.
  private static func fitting(_ entries: ArraySlice<MediaListing.Entry>) -> ArraySlice<MediaListing.Entry> {
    var byteCount = 0
    return entries.prefix { entry in
      // Twice: a character may have to be escaped; and what stands around the values.
      byteCount += 2 * (entry.name.utf8.count + (entry.url?.utf8.count ?? 0)) + 64
      return byteCount <= maximumListingByteCount
    }
  }

  /// Opens what may lie below the root. A path that leads out by its own words is refused before anything
  /// is looked for, so that no answer tells what lies outside.
  private func openDescriptor(_ relativePath: String) throws(ErrorReport) -> Int32 {
    var depth = 0
    for part in relativePath.split(separator: "/") where part != "." {
      depth += part == ".." ? -1 : 1
      guard depth >= 0 else { throw Self.outside(relativePath) }
    }
    let descriptor = antiphon_open_read("\(path)/\(relativePath)")
    guard descriptor >= 0 else { throw Self.report(errno, relativePath) }
    return descriptor
  }

  private func entry(_ name: String, in folder: String, descriptor: Int32) -> MediaListing.Entry? {
    var status = stat()
    guard fstatat(descriptor, name, &status, AT_SYMLINK_NOFOLLOW) == 0 else { return nil }
    let path = folder.isEmpty ? name : "\(folder)/\(name)"
    // What is no link is where its folder is.
    if status.st_mode & S_IFMT == S_IFLNK {
      guard isBelowRoot(path), fstatat(descriptor, name, &status, 0) == 0 else { return nil }
    }
    switch status.st_mode & S_IFMT {
    case S_IFDIR: return .init(name: name, kind: .folder)
    case S_IFREG:
      return .init(name: name, kind: .file, url: MediaSource.url(forPath: path), bytes: Int(status.st_size))
    default: return nil
    }
  }

  /// Whether a path is below the root after every link.
  private func isBelowRoot(_ relativePath: String) -> Bool {
    guard let resolved = realpath("\(path)/\(relativePath)", nil) else { return false }
    defer { free(resolved) }
    return contains(String(cString: resolved))
  }

  private func contains(_ resolved: String) -> Bool {
    resolved == path || resolved.hasPrefix(path == "/" ? "/" : path + "/")
  }

  private func check(_ descriptor: Int32, _ relativePath: String) throws(ErrorReport) {
    var buffer = [CChar](repeating: 0, count: Int(PATH_MAX) + 1)
    let length = readlink("/proc/self/fd/\(descriptor)", &buffer, Int(PATH_MAX))
    let opened = String(decoding: buffer.prefix(max(0, length)).map(UInt8.init(bitPattern:)), as: UTF8.self)
    guard contains(opened) else {
      throw Self.outside(relativePath)
    }
  }

  private static func outside(_ relativePath: String) -> ErrorReport {
    ErrorReport(
      .sourceForbidden, "media:\(relativePath.shortened) lies outside the media root",
      hint: "put the file itself below the media root; links out of it are not followed", stage: .resolve)
  }

  private static func report(_ code: Int32, _ relativePath: String) -> ErrorReport {
    switch code {
    case ENOENT, ENOTDIR:
      ErrorReport(
        .sourceNotFound, "media:\(relativePath.shortened) does not exist below the media root",
        hint: "media lists the files", stage: .resolve)
    case EACCES, EPERM, ELOOP:
      ErrorReport(
        .sourceForbidden, "media:\(relativePath.shortened) may not be read: \(errorText(code))",
        hint: "let the engine's user read it", stage: .resolve)
    default:
      ErrorReport(
        .sourceUnreachable, "media:\(relativePath.shortened) cannot be opened: \(errorText(code))",
        stage: .resolve)
    }
  }
}
