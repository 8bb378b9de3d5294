import WireProtocol

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// An HLS playlist (RFC 8216): a choice of others, or a list of segments.
package enum HLSPlaylist: Equatable {
  case main(HLSMainPlaylist)
  case media(HLSMediaPlaylist)

  /// More of a playlist is not read, and one with more lines is refused.
  package static let maximumByteCount = 1 << 20
  package static let maximumLineCount = 20_000

  /// - Parameters:
  ///   - text: of the playlist.
  ///   - url: where it is, which relative addresses go out from.
  /// - Throws: `source_not_audio` for what is no HLS; `source_corrupt`, naming what is wrong; `source_forbidden` for an
  ///   address that is no web address.
  package init(_ text: String, url: String) throws(ErrorReport) {
    let lines = text.split(separator: "\n", omittingEmptySubsequences: true)
      .map { $0.trimmingCharacters(in: .whitespaces) }
    guard lines.first == "#EXTM3U", lines.contains(where: { $0.hasPrefix("#EXT-X-") }) else {
      throw ErrorReport(.sourceNotAudio, "it is no HLS playlist", stage: .probe)
    }
    guard lines.count <= Self.maximumLineCount else {
      throw Self.broken("it has over \(Self.maximumLineCount) lines")
    }
    if lines.contains(where: { $0.hasPrefix("#EXT-X-STREAM-INF:") }) {
      self = .main(try HLSMainPlaylist(lines, url: url))
    } else {
      self = .media(try HLSMediaPlaylist(lines, url: url))
    }
  }

  static let hint = "check the playlist's address, or tell who serves it"

  static func broken(_ what: String) -> ErrorReport {
    ErrorReport(.sourceCorrupt, "the HLS playlist cannot be read: \(what)", hint: hint, stage: .probe)
  }

  /// - Throws: `source_forbidden` for what is neither http nor https: no playlist leads out of the web.
  static func address(_ text: String, from url: String) throws(ErrorReport) -> String {
    guard let address = URL(string: text, relativeTo: URL(string: url))?.absoluteString,
      case .web(let checked)? = try? MediaSource(address)
    else {
      throw ErrorReport(
        .sourceForbidden, "the HLS playlist names an address that is none of the web", hint: hint,
        stage: .resolve)
    }
    return checked
  }

  /// `NAME=value,NAME="value"` (RFC 8216, section 4.2).
  static func attributes(_ line: Substring) -> [String: String] {
    var attributes: [String: String] = [:]
    var rest = line
    while let equals = rest.firstIndex(of: "=") {
      let name = rest[..<equals].trimmingCharacters(in: .whitespaces)
      rest = rest[rest.index(after: equals)...]
      let end: Substring.Index
      if rest.first == "\"" {
        rest = rest.dropFirst()
        end = rest.firstIndex(of: "\"") ?? rest.endIndex
        attributes[name] = String(rest[..<end])
        rest = rest[end...].dropFirst()
        rest = rest.first == "," ? rest.dropFirst() : rest
      } else {
        end = rest.firstIndex(of: ",") ?? rest.endIndex
        attributes[name] = String(rest[..<end])
        rest = rest[end...].dropFirst()
      }
    }
    return attributes
  }
}

/// A choice of renditions of the same sound (RFC 8216, section 4.3.4).
package struct HLSMainPlaylist: Equatable {
  struct Variant: Equatable {
    var url: String
    /// In bits a second, the peak.
    var bandwidth: Int
    var codecs: String?
    var hasPicture: Bool
    /// The group of audio renditions that goes with it.
    var audioGroup: String?
  }

  struct Rendition: Equatable {
    var group: String
    /// Nil where the sound is in the variant itself.
    var url: String?
    var isDefault: Bool
  }

  /// More than this is more than Opus gives to its listeners.
  package static let maximumBandwidth = 512_000

  private(set) var variants: [Variant] = []
  private(set) var renditions: [Rendition] = []

  init(_ lines: [String], url: String) throws(ErrorReport) {
    var pending: [String: String]?
    for line in lines {
      if line.hasPrefix("#EXT-X-STREAM-INF:") {
        pending = HLSPlaylist.attributes(line.dropFirst("#EXT-X-STREAM-INF:".count))
      } else if line.hasPrefix("#EXT-X-MEDIA:") {
        let attributes = HLSPlaylist.attributes(line.dropFirst("#EXT-X-MEDIA:".count))
        guard attributes["TYPE"] == "AUDIO", let group = attributes["GROUP-ID"] else { continue }
        let address = try attributes["URI"].map { (text) throws(ErrorReport) in
          try HLSPlaylist.address(text, from: url)
        }
        renditions.append(
          Rendition(group: group, url: address, isDefault: attributes["DEFAULT"] == "YES"))
      } else if !line.hasPrefix("#"), let attributes = pending {
        pending = nil
        let codecs = attributes["CODECS"]
        variants.append(
          Variant(
            url: try HLSPlaylist.address(line, from: url),
            bandwidth: attributes["BANDWIDTH"].flatMap { Int($0) } ?? 0, codecs: codecs,
            hasPicture: attributes["RESOLUTION"] != nil || Self.namesPicture(codecs ?? ""),
            audioGroup: attributes["AUDIO"]))
      }
    }
    guard !variants.isEmpty else { throw HLSPlaylist.broken("it lists no stream") }
  }

  private static func namesPicture(_ codecs: String) -> Bool {
    ["avc", "hvc", "hev", "vp0", "av01", "dvh"].contains(where: codecs.contains)
  }

  /// The address of the best sound within `maximumBandwidth`: sound alone before sound with a picture, which costs the
  /// picture's bytes, and then the smallest picture.
  package var bestAudioURL: String {
    let alone = variants.filter { !$0.hasPicture }
    let fitting = alone.filter { $0.bandwidth <= Self.maximumBandwidth }.max { $0.bandwidth < $1.bandwidth }
    if let best = fitting ?? alone.min(by: { $0.bandwidth < $1.bandwidth }) {
      return rendition(of: best) ?? best.url
    }
    // The groups of the better pictures have the better sound.
    let grouped = variants.filter { rendition(of: $0) != nil }.max { $0.bandwidth < $1.bandwidth }
    if let grouped, let url = rendition(of: grouped) { return url }
    return variants.min { $0.bandwidth < $1.bandwidth }!.url
  }

  private func rendition(of variant: Variant) -> String? {
    let group = renditions.filter { $0.group == variant.audioGroup && $0.url != nil }
    return (group.first(where: \.isDefault) ?? group.first)?.url
  }
}
