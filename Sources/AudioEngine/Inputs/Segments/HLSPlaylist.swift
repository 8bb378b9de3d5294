import WireProtocol

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// An HLS playlist (RFC 8216): a choice of others, or a list of segments.
package enum HLSPlaylist {
  /// One with more lines is refused.
  package static let maximumLineCount = 20_000

  /// - Parameters:
  ///   - text: of the playlist.
  ///   - url: where it is, which relative addresses go out from.
  /// - Throws: `source_not_audio` for what is no HLS; `source_corrupt`, naming what is wrong; `source_forbidden` for an
  ///   address that is no web address.
  package static func listing(_ text: String, url: String) throws(ErrorReport) -> SegmentListing {
    let lines = text.split(whereSeparator: \.isNewline).map { $0.trimmingCharacters(in: .whitespaces) }
    guard lines.first == "#EXTM3U", lines.contains(where: { $0.hasPrefix("#EXT-X-") }) else {
      throw ErrorReport(.sourceNotAudio, "it is no HLS playlist", stage: .probe)
    }
    guard lines.count <= maximumLineCount else { throw broken("it has over \(maximumLineCount) lines") }
    if lines.contains(where: { $0.hasPrefix("#EXT-X-STREAM-INF:") }) {
      return .choice(url: try HLSMainPlaylist(lines, url: url).bestAudioURL)
    }
    return .segments(try HLSMediaPlaylist(lines, url: url).playlist)
  }

  static func broken(_ what: String) -> ErrorReport {
    ErrorReport(
      .sourceCorrupt, "the HLS playlist cannot be read: \(what)", hint: SegmentListing.hint,
      stage: .probe)
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
struct HLSMainPlaylist {
  struct Variant {
    var url: String
    /// In bits a second, the peak.
    var bandwidth: Int
    var codecs: String?
    var hasPicture: Bool
    /// The group of audio renditions that goes with it.
    var audioGroup: String?
  }

  struct Rendition {
    var group: String
    /// Nil where the sound is in the variant itself.
    var url: String?
    var isDefault: Bool
  }

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
          try SegmentListing.address(text, from: url)
        }
        renditions.append(
          Rendition(group: group, url: address, isDefault: attributes["DEFAULT"] == "YES"))
      } else if !line.hasPrefix("#"), let attributes = pending {
        pending = nil
        let codecs = attributes["CODECS"]
        variants.append(
          Variant(
            url: try SegmentListing.address(line, from: url),
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

  /// The address of the best sound within `SegmentPlaylist.maximumBandwidth`: sound alone before sound with a picture, which costs the
  /// picture's bytes, and then the smallest picture.
  var bestAudioURL: String {
    let alone = variants.filter { !$0.hasPicture }
    let fitting = alone.filter { $0.bandwidth <= SegmentPlaylist.maximumBandwidth }.max {
      $0.bandwidth < $1.bandwidth
    }
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
