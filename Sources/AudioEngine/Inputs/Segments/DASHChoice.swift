import WireProtocol

/// Which of a period's representations is played.
struct DASHChoice {
  /// What leads to it, from the outside in: Period, AdaptationSet, Representation; nil where there is no sound.
  private(set) var levels: [XMLElement]?

  private static let soundCodecs = ["mp4a", "opus", "vorbis", "flac", "fLaC", "ac-3", "ec-3", "mp3"]

  private struct Candidate {
    let set: XMLElement
    let representation: XMLElement

    func attribute(_ name: String) -> String? { representation[name] ?? set[name] }

    /// In bits a second.
    var bandwidth: Int { representation["bandwidth"].flatMap { Int($0) } ?? 0 }

    var kind: String {
      String(set["contentType"] ?? attribute("mimeType").map { String($0.prefix { $0 != "/" }) } ?? "")
    }

    var isSound: Bool { kind == "audio" }

    /// A picture with sound.
    var hasSound: Bool {
      kind == "video" && soundCodecs.contains { attribute("codecs")?.contains($0) == true }
    }

    var protection: XMLElement? {
      representation.child("ContentProtection") ?? set.child("ContentProtection")
    }

    /// The main sound first, what is told of no role next, and commentaries and the like last.
    var rank: Int {
      let roles = set.children("Role").compactMap { $0["value"] }
      if roles.contains("main") { return 0 }
      return roles.isEmpty && set.child("Accessibility") == nil ? 1 : 2
    }
  }

  /// - Throws: `source_not_audio` where all sound is encrypted.
  init(_ period: XMLElement, _ representationID: String?) throws(ErrorReport) {
    let all = period.children("AdaptationSet").flatMap { set in
      set.children("Representation").map { Candidate(set: set, representation: $0) }
    }
    let heard = all.contains(where: \.isSound) ? all.filter(\.isSound) : all.filter(\.hasSound)
    let open = heard.filter { $0.protection == nil }
    if open.isEmpty, let protection = heard.first?.protection {
      let scheme = protection["value"] ?? protection["schemeIdUri"] ?? ""
      throw ErrorReport(
        .sourceNotAudio, "its segments are encrypted (ContentProtection \(scheme.quoted))",
        hint: "it is protected against copying", stage: .decode)
    }
    guard let best = Self.named(representationID, open) ?? Self.best(open) else { return }
    levels = [period, best.set, best.representation]
  }

  /// yt-dlp puts the manifest's name before the representation's, where it has one.
  private static func named(_ id: String?, _ candidates: [Candidate]) -> Candidate? {
    guard let id else { return nil }
    return candidates.first { candidate in
      candidate.representation["id"].map { id == $0 || id.hasSuffix("-\($0)") } == true
    }
  }

  /// The best of the main sound in the language that comes first; of pictures the smallest.
  private static func best(_ candidates: [Candidate]) -> Candidate? {
    guard let rank = candidates.map(\.rank).min(),
      let first = candidates.first(where: { $0.rank == rank })
    else { return nil }
    let alike = candidates.filter { $0.rank == rank && $0.set["lang"] == first.set["lang"] }
    let fitting = alike.filter { $0.isSound && $0.bandwidth <= SegmentPlaylist.maximumBandwidth }
    return fitting.max { $0.bandwidth < $1.bandwidth } ?? alike.min { $0.bandwidth < $1.bandwidth }
  }
}
