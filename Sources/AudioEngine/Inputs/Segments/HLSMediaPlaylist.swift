import WireProtocol

/// A list of segments (RFC 8216, section 4.3.3).
struct HLSMediaPlaylist {
  /// How far from its end a live stream is joined, in target durations (RFC 8216, section 6.3.3).
  private static let liveTargets = 3.0

  /// Of segments; no count of them gets from here to the end of what can be counted.
  private static let numbers = 0...1 << 62

  private(set) var playlist: SegmentPlaylist

  init(_ lines: [String], url: String) throws(ErrorReport) {
    playlist = SegmentPlaylist(url: url)
    var (number, targetSeconds) = (0, 0.0)
    var pending = Pending()
    var (key, map): (SegmentPlaylist.Key?, SegmentPlaylist.Part?) = (nil, nil)
    for line in lines {
      let (name, value) = Self.split(line)
      switch name {
      case "#EXT-X-TARGETDURATION": targetSeconds = try Self.duration(value)
      case "#EXT-X-MEDIA-SEQUENCE":
        guard let first = Int(value), Self.numbers.contains(first), playlist.segments.isEmpty else {
          throw HLSPlaylist.broken("its media sequence is \(value.prefix(20))")
        }
        number = first
      case "#EXT-X-ENDLIST": playlist.isEnded = true
      case "#EXTINF":
        let parts = value.split(separator: ",", maxSplits: 1)
        pending.seconds = try Self.duration(parts.first ?? "")
        pending.title = parts.count > 1 ? TagText.bounded(String(parts[1])) : nil
      case "#EXT-X-BYTERANGE": pending.range = try Self.range(value, after: pending.rangeEnd)
      case "#EXT-X-DISCONTINUITY": pending.isDiscontinuous = true
      case "#EXT-X-GAP": pending.isGap = true
      case "#EXT-X-KEY": key = try Self.key(HLSPlaylist.attributes(value), url: url)
      case "#EXT-X-MAP": map = try Self.map(HLSPlaylist.attributes(value), url: url)
      case _ where line.hasPrefix("#"): break
      default:
        let part = SegmentPlaylist.Part(
          url: try SegmentListing.address(line, from: url), range: pending.range)
        playlist.segments.append(
          SegmentPlaylist.Segment(
            number: number, nextNumber: number + 1, part: part, seconds: pending.seconds,
            title: pending.title,
            key: key, map: map, isDiscontinuous: pending.isDiscontinuous, isGap: pending.isGap))
        number += 1
        pending = Pending(rangeEnd: pending.range?.upperBound ?? 0)
      }
    }
    guard targetSeconds > 0 || playlist.isEnded else { throw HLSPlaylist.broken("it has no target duration") }
    playlist.joinSeconds = Self.liveTargets * targetSeconds
    // Half of one is the shortest time that is allowed (RFC 8216, section 6.3.4).
    playlist.reloadSeconds = targetSeconds / 2
  }

  /// What the lines before a segment's address say of it.
  private struct Pending {
    var seconds = 0.0
    var title: String?
    var range: Range<Int64>?
    var isDiscontinuous = false
    var isGap = false
    /// Where the range before ends.
    var rangeEnd: Int64 = 0
  }

  private static func split(_ line: String) -> (name: String, value: Substring) {
    guard line.hasPrefix("#"), let colon = line.firstIndex(of: ":") else { return (line, "") }
    return (String(line[..<colon]), line[line.index(after: colon)...])
  }

  private static func duration(_ text: Substring) throws(ErrorReport) -> Double {
    guard let seconds = Double(text.trimmingCharacters(in: .whitespaces)),
      SegmentPlaylist.segmentSeconds.contains(seconds)
    else {
      throw HLSPlaylist.broken("a duration is \(text.prefix(20))")
    }
    return seconds
  }

  /// `LENGTH[@OFFSET]`; without an offset it follows the one before.
  private static func range(
    _ text: some StringProtocol, after end: Int64
  ) throws(ErrorReport) -> Range<Int64> {
    let parts = text.split(separator: "@")
    guard (1...2).contains(parts.count), let length = Int64(parts[0]), length > 0,
      let offset = parts.count == 2 ? Int64(parts[1]) : end, offset >= 0, offset < 1 << 48, length < 1 << 48
    else { throw HLSPlaylist.broken("a byte range is \(text.prefix(40))") }
    return offset..<offset + length
  }

  private static func key(_ attributes: [String: String], url: String) throws(ErrorReport) -> SegmentPlaylist
    .Key?
  {
    switch attributes["METHOD"] {
    case "NONE", nil: return nil
    case "AES-128":
      guard let address = attributes["URI"] else { throw HLSPlaylist.broken("a key has no address") }
      return SegmentPlaylist.Key(
        url: try SegmentListing.address(address, from: url),
        initializationVector: try attributes["IV"].map { (text) throws(ErrorReport) in try vector(text) })
    case let method?:
      throw ErrorReport(
        .sourceNotAudio, "its segments are encrypted with \(method.quoted), and AES-128 alone is played",
        hint: "it may be protected against copying", stage: .decode)
    }
  }

  private static func vector(_ text: String) throws(ErrorReport) -> [UInt8] {
    let digits = Array(text.dropFirst(2))
    guard text.lowercased().hasPrefix("0x"), digits.count == 32 else {
      throw HLSPlaylist.broken("an initialization vector is \(text.prefix(40))")
    }
    let bytes = stride(from: 0, to: 32, by: 2).compactMap { UInt8(String(digits[$0...($0 + 1)]), radix: 16) }
    guard bytes.count == 16 else {
      throw HLSPlaylist.broken("an initialization vector is \(text.prefix(40))")
    }
    return bytes
  }

  private static func map(_ attributes: [String: String], url: String) throws(ErrorReport)
    -> SegmentPlaylist.Part
  {
    guard let address = attributes["URI"] else { throw HLSPlaylist.broken("a map has no address") }
    return SegmentPlaylist.Part(
      url: try SegmentListing.address(address, from: url),
      range: try attributes["BYTERANGE"].map { (text) throws(ErrorReport) in try range(text, after: 0) })
  }
}
