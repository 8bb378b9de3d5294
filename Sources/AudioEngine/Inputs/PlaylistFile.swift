import WireProtocol

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// What a playlist file lists: M3U (also as UTF-8), PLS or XSPF. A list of HLS segments is none.
package struct PlaylistFile: Equatable {
  package struct Entry: Equatable {
    /// What `play` takes.
    package var url: String
    package var title: String?
  }

  /// More of a file is not read, and further entries are left out.
  package static let maximumByteCount = 256 << 10
  package static let maximumEntryCount = 1_000
  private static let fileSuffixes = [".m3u", ".m3u8", ".pls", ".xspf"]
  private static let mediaTypes: Set<String> = [
    "audio/x-mpegurl", "audio/mpegurl", "application/x-mpegurl", "application/mpegurl",
    "application/vnd.apple.mpegurl", "audio/x-scpls", "application/pls+xml", "application/xspf+xml",
  ]

  package private(set) var title: String?
  package private(set) var entries: [Entry] = []

  /// Whether a file may be one, by its name or the media type that its server gives.
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
    if lines.contains(where: { $0.hasPrefix("#EXT-X-") }) {
      throw ErrorReport(
        .sourceNotAudio, "it is a list of HLS segments, which is one stream", stage: .probe)
    }
    if lines.first?.lowercased() == "[playlist]" {
      readPLS(lines, source)
    } else if text.hasPrefix("<") {
      readXSPF(text, source)
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
  private mutating func readXSPF(_ text: String, _ source: MediaSource) {
    let parts = text.split(separator: "<track>")
    title = parts.first.flatMap { Self.content("title", of: $0) }.flatMap(TagText.bounded)
    for part in parts.dropFirst().prefix(Self.maximumEntryCount) {
      guard let address = Self.content("location", of: part) else { continue }
      let names = [Self.content("creator", of: part), Self.content("title", of: part)].compactMap(\.self)
      add(address, names.isEmpty ? nil : names.joined(separator: " - "), source)
    }
  }

  private static func content(_ element: String, of text: Substring) -> String? {
    guard let start = text.range(of: "<\(element)>"),
      let end = text[start.upperBound...].range(of: "</\(element)>")
    else { return nil }
    var content = text[start.upperBound..<end.lowerBound].trimmingCharacters(in: .whitespacesAndNewlines)
    for (entity, character) in [
      ("&lt;", "<"), ("&gt;", ">"), ("&quot;", "\""), ("&apos;", "'"), ("&amp;", "&"),
    ] {
      content = content.replacing(entity, with: character)
    }
    return content
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

  /// Fetches one, by the rules for every source. Blocks the calling thread.
  init(
    fetching request: WebRequest, access: WebAccess, isCancelled: @escaping () -> Bool
  ) throws(ErrorReport) {
    var request = request
    let transfer: HTTPTransfer
    do throws(HTTPFailure) {
      (transfer, _) = try HTTPConnector(access: access, isCancelled: isCancelled).get(
        &request, HTTPTransfer.Range(first: 0), journal: nil)
    } catch {
      throw error.report
    }
    defer { transfer.close() }
    let bytes = try transfer.readAll(
      maximumByteCount: Self.maximumByteCount, timeoutSeconds: access.timeoutSeconds, isCancelled: isCancelled
    )
    try self.init(bytes, from: .web(url: request.url))
  }
}
