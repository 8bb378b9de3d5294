import WireProtocol

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// What a playlist file lists: M3U (also as UTF-8), PLS or XSPF. A list of segments is none.
package struct PlaylistFile: Equatable {
  package struct Entry: Equatable {
    /// What `play` takes.
    package var url: String
    package var title: String?
  }

  /// More of a file is not read, and further entries are left out.
  package static let maximumByteCount = 256 << 10
  package static let maximumEntryCount = 1_000
  private static let fileSuffixes = [".m3u", ".m3u8", ".pls", ".xspf", ".mpd"]
  private static let mediaTypes: Set<String> = [
    "audio/x-mpegurl", "audio/mpegurl", "application/x-mpegurl", "application/mpegurl",
    "application/vnd.apple.mpegurl", "audio/x-scpls", "application/pls+xml", "application/xspf+xml",
    "application/dash+xml",
  ]

  package private(set) var title: String?
  package private(set) var entries: [Entry] = []

  /// Whether a file may be one, or a list of segments, by its name or the media type that its server gives.
  package static func mayBe(name: String, mediaType: String? = nil) -> Bool {
    let path = name.prefix { $0 != "?" && $0 != "#" }.lowercased()
    return mediaType.map(mediaTypes.contains) == true || fileSuffixes.contains(where: path.hasSuffix)
  }

  /// - Parameters:
  ///   - bytes: of the file, or as many of them as are read.
  ///   - source: where the file is, which relative addresses go out from.
  /// - Throws: `source_not_audio` where it lists nothing that can be played.
  package init(_ bytes: [UInt8], from source: MediaSource) throws(ErrorReport) {
    var text = bytes.withUnsafeBytes { TagText.decoded($0, isCut: bytes.count == Self.maximumByteCount) }
    if text.hasPrefix("\u{FEFF}") { text.removeFirst() }
    let lines = text.split(whereSeparator: \.isNewline).map { $0.trimmingCharacters(in: .whitespaces) }
    if SegmentListing.isOne(bytes) {
      throw ErrorReport(
        .sourceNotAudio, "it lists the segments of one stream, which is played from the web alone",
        stage: .probe)
    }
    if lines.first?.lowercased() == "[playlist]" {
      readPLS(lines, source)
    } else if text.hasPrefix("<") {
      readXSPF(bytes, source)
    } else {
      readM3U(lines, source)
    }
    guard !entries.isEmpty else {
      throw ErrorReport(
        .sourceNotAudio, "the playlist lists nothing that can be played",
        hint: "it must list http and https addresses, or files below the media root", stage: .probe)
    }
  }

  /// `#EXTINF:123,Artist - Title`, and an address in the next line without `#`.
  private mutating func readM3U(_ lines: [String], _ source: MediaSource) {
    var name: String?
    for line in lines {
      if line.hasPrefix("#EXTINF:") {
        name = line.firstIndex(of: ",").map { String(line[line.index(after: $0)...]) }
      } else if line.hasPrefix("#PLAYLIST:") {
        title = TagText.bounded(String(line.dropFirst("#PLAYLIST:".count)))
      } else if !line.isEmpty, !line.hasPrefix("#") {
        add(line, name, source)
        name = nil
      }
    }
  }

  /// `File1=…`, `Title1=…`.
  private mutating func readPLS(_ lines: [String], _ source: MediaSource) {
    var fields: [String: String] = [:]
    for line in lines {
      guard let equals = line.firstIndex(of: "=") else { continue }
      fields[line[..<equals].lowercased()] = String(line[line.index(after: equals)...])
    }
    for number in 1...Self.maximumEntryCount {
      if let address = fields["file\(number)"] { add(address, fields["title\(number)"], source) }
    }
  }

  /// `<track><location>…</location><title>…</title></track>`.
  private mutating func readXSPF(_ bytes: [UInt8], _ source: MediaSource) {
    guard let playlist = try? XMLElement(bytes) else { return }
    title = playlist.child("title").flatMap { TagText.bounded($0.text) }
    for track in playlist.child("trackList")?.children("track") ?? [] {
      guard let address = track.child("location")?.text else { continue }
      let names = [track.child("creator"), track.child("title")].compactMap { $0?.text }
      add(address, names.isEmpty ? nil : names.joined(separator: " - "), source)
    }
  }

  private mutating func add(_ address: String, _ name: String?, _ source: MediaSource) {
    guard entries.count < Self.maximumEntryCount, let url = Self.url(of: address, from: source) else {
      return
    }
    entries.append(Entry(url: url, title: name.flatMap(TagText.bounded)))
  }

  /// Nil for what may not be played from there: a list from the web names no files.
  private static func url(of address: String, from source: MediaSource) -> String? {
    switch source {
    case .score: return nil
    case .web(let base):
      guard let url = URL(string: address, relativeTo: URL(string: base))?.absoluteString,
        case .web(let checked)? = try? MediaSource(url)
      else { return nil }
      return checked
    case .file(let path):
      if case .web(let checked)? = try? MediaSource(address) { return checked }
      guard !address.contains("://"), !address.hasPrefix("/") else { return nil }
      let folder = path.lastIndex(of: "/").map { path[...$0] } ?? ""
      return MediaSource.url(forPath: folder + address.replacing("\\", with: "/"))
    }
  }
}

extension PlaylistFile {
  /// Reads one below the media root.
  init(_ input: FileInput, path: String) throws(ErrorReport) {
    try self.init(input.peek(at: 0, byteCount: Self.maximumByteCount), from: .file(path: path))
  }

  /// Reads one from the web.
  init(_ document: WebDocument) throws(ErrorReport) {
    guard document.bytes.count <= Self.maximumByteCount || SegmentListing.isOne(document.bytes) else {
      throw ErrorReport(
        .sourceTooLarge, "the playlist has over \(Self.maximumByteCount) bytes", stage: .probe)
    }
    try self.init(document.bytes, from: .web(url: document.url))
  }
}
