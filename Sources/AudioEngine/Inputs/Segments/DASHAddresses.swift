import WireProtocol

/// Where one representation's sound is (ISO/IEC 23009-1, section 5.3.9): by a template, by a list, or all in one file.
struct DASHAddresses {
  /// Of a live stream the last so many are looked at: what is read next is among them.
  private static let maximumLiveSegmentCount = 200
  /// Of one `S`: over five days of segments of two seconds.
  private static let repetitions = -(1 << 18)...1 << 18
  private static let times = 0...1 << 61
  private static let timescales = 1...1_000_000_000
  private static let microseconds = 1e6

  private let levels: [XMLElement]
  private let period: DASHManifest.Period
  private let isLive: Bool
  private let windowSeconds: Double?
  private let base: String
  /// `SegmentTemplate` or `SegmentList`; nil where neither is there.
  private let kind: String?
  private var timescale = 1
  /// Where the period begins in the media's own time.
  private var offset = 0

  /// A segment's place: in the numbering, and in units of the timescale.
  private struct Slot {
    var number: Int
    var time: Int
    var duration: Int
  }

  /// - Parameter levels: MPD, Period, AdaptationSet, Representation: what is said farther in counts.
  init(
    _ levels: [XMLElement], manifestURL: String, _ period: DASHManifest.Period, isLive: Bool,
    windowSeconds: Double?
  ) throws(ErrorReport) {
    self.levels = levels
    self.period = period
    self.isLive = isLive
    self.windowSeconds = windowSeconds
    var base = manifestURL
    for level in levels {
      if let text = level.child("BaseURL")?.text { base = try SegmentListing.address(text, from: base) }
    }
    self.base = base
    let innermost = levels.reversed().lazy.compactMap { level in
      ["SegmentTemplate", "SegmentList", "SegmentBase"].first { level.child($0) != nil }
    }.first
    kind = innermost == "SegmentBase" ? nil : innermost
    guard kind != nil || base != manifestURL else {
      throw DASHManifest.broken("it does not say where its sound is")
    }
    timescale = try number("timescale", in: Self.timescales) ?? 1
    offset = try number("presentationTimeOffset", in: Self.times) ?? 0
  }

  /// Nil where there are segments.
  var fileURL: String? { kind == nil ? base : nil }

  /// Those there are by now, as far as they can matter.
  func segments() throws(ErrorReport) -> [SegmentPlaylist.Segment] {
    guard let kind else {
      return [try segment(Slot(number: 0, time: 0, duration: 0), SegmentPlaylist.Part(url: base), nil)]
    }
    let entries = levels.reversed().lazy.compactMap { $0.child(kind)?.children("SegmentURL") }
      .first { !$0.isEmpty }
    let slots = try slots(isList: kind == "SegmentList", listedCount: entries?.count ?? 0)
    let (map, template) = (try map(), value("media"))
    var segments: [SegmentPlaylist.Segment] = []
    for (index, slot) in slots.enumerated() {
      let part: SegmentPlaylist.Part
      if let entries {
        // Of a live list the last are looked at.
        let first = isLive ? entries.count - slots.count : 0
        part = try self.part(entries[first + index], "media", "mediaRange")
      } else if let template {
        part = SegmentPlaylist.Part(url: try address(template, slot))
      } else {
        throw DASHManifest.broken("its segments have no address")
      }
      segments.append(try segment(slot, part, map))
    }
    return segments
  }

  private func segment(
    _ slot: Slot, _ part: SegmentPlaylist.Part, _ map: SegmentPlaylist.Part?
  ) throws(ErrorReport) -> SegmentPlaylist.Segment {
    let seconds = slot.duration > 0 ? Double(slot.duration) / Double(timescale) : period.durationSeconds ?? 0
    let begin = period.startSeconds + Double(slot.time - offset) / Double(timescale)
    guard DASHTime.seconds.contains(abs(begin)) else {
      throw DASHManifest.broken("a segment begins at \(begin) s")
    }
    // A segment is known by its time, which reloads may give a little differently.
    let number = Int((begin * Self.microseconds).rounded())
    return SegmentPlaylist.Segment(
      number: number, nextNumber: number + max(1, Int(seconds / 2 * Self.microseconds)), part: part,
      seconds: seconds, map: map)
  }

  // MARK: Times

  private func slots(isList: Bool, listedCount: Int) throws(ErrorReport) -> [Slot] {
    let start = try number("startNumber", in: 0...1 << 40) ?? 1
    if let timeline = element("SegmentTimeline") {
      let slots = try slots(timeline, from: start)
      // Each has its address.
      guard isList, slots.count > listedCount else { return slots }
      return Array(isLive ? slots.suffix(listedCount) : slots.prefix(listedCount))
    }
    guard let duration = try number("duration", in: Self.times) else {
      guard isList, listedCount == 1 else { throw DASHManifest.broken("it has no duration of segments") }
      return [Slot(number: start, time: offset, duration: 0)]
    }
    try check(duration)
    let count = isList ? listedCount : try count(of: duration)
    var first = isLive ? max(0, count - Self.maximumLiveSegmentCount) : 0
    if !isList, isLive, let windowSeconds {
      first = max(first, count - max(1, Int(windowSeconds * Double(timescale) / Double(duration))))
    }
    guard count - first <= SegmentPlaylist.maximumSegmentCount else {
      throw DASHManifest.broken("it lists over \(SegmentPlaylist.maximumSegmentCount) segments")
    }
    return (first..<count).map { index in
      Slot(
        number: start + index, time: offset + index * duration,
        duration: lastDuration(index, duration))
    }
  }

  /// The last of a track may be shorter than the others.
  private func lastDuration(_ index: Int, _ duration: Int) -> Int {
    guard let end = period.durationSeconds, !isLive else { return duration }
    return max(1, min(duration, Int((end * Double(timescale)).rounded()) - index * duration))
  }

  /// How many segments of a duration there are.
  private func count(of duration: Int) throws(ErrorReport) -> Int {
    Int(Self.whole(try totalUnits() / Double(duration), isCut: isLive))
  }

  /// How long the period is by now, in units of the timescale.
  private func totalUnits() throws(ErrorReport) -> Double {
    guard let seconds = isLive ? period.availableSeconds : period.durationSeconds else {
      throw DASHManifest.broken("it does not say how long it is")
    }
    return seconds * Double(timescale)
  }

  /// - Parameter isCut: whether the last segment counts only where it is whole.
  private static func whole(_ count: Double, isCut: Bool) -> Double {
    // What rounding makes of a whole number is one.
    isCut ? count.rounded(.down) : (count - 1e-6).rounded(.up)
  }

  private func slots(_ timeline: XMLElement, from start: Int) throws(ErrorReport) -> [Slot] {
    var slots: [Slot] = []
    var (number, time) = (start, 0)
    let entries = timeline.children("S")
    for (index, entry) in entries.enumerated() {
      time = try Self.number(entry, "t", in: Self.times) ?? time
      guard let duration = try Self.number(entry, "d", in: Self.times) else {
        throw DASHManifest.broken("a segment has no duration")
      }
      try check(duration)
      var count = 1 + (try Self.number(entry, "r", in: Self.repetitions) ?? 0)
      if count < 1 {
        let next = index + 1 < entries.count ? try Self.number(entries[index + 1], "t", in: Self.times) : nil
        count = try self.count(of: duration, from: time, to: next)
      }
      let skipped = isLive ? max(0, count - Self.maximumLiveSegmentCount) : 0
      for repetition in skipped..<max(skipped, count) {
        slots.append(
          Slot(number: number + repetition, time: time + repetition * duration, duration: duration))
      }
      if isLive { slots.removeFirst(max(0, slots.count - Self.maximumLiveSegmentCount)) }
      guard slots.count <= SegmentPlaylist.maximumSegmentCount else {
        throw DASHManifest.broken("it lists over \(SegmentPlaylist.maximumSegmentCount) segments")
      }
      number += count
      time += count * duration
      guard Self.times.contains(time) else { throw DASHManifest.broken("a segment begins at \(time)") }
    }
    return slots
  }

  /// Of an `S` that is repeated up to the next one, or to the period's end, or until now.
  private func count(of duration: Int, from time: Int, to next: Int?) throws(ErrorReport) -> Int {
    let units = if let next { Double(next - time) } else { try totalUnits() - Double(time - offset) }
    let whole = max(0, Self.whole(units / Double(duration), isCut: isLive && next == nil))
    guard whole <= Double(Self.repetitions.upperBound) else {
      throw DASHManifest.broken("a segment is repeated \(whole) times")
    }
    return Int(whole)
  }

  private func check(_ duration: Int) throws(ErrorReport) {
    let seconds = Double(duration) / Double(timescale)
    guard duration > 0, SegmentPlaylist.segmentSeconds.contains(seconds) else {
      throw DASHManifest.broken("a duration is \(duration)")
    }
  }

  // MARK: Addresses

  private func map() throws(ErrorReport) -> SegmentPlaylist.Part? {
    if let template = value("initialization") {
      return SegmentPlaylist.Part(url: try address(template, Slot(number: 0, time: 0, duration: 0)))
    }
    return try element("Initialization").map { (element) throws(ErrorReport) in
      try part(element, "sourceURL", "range")
    }
  }

  /// An element's address, and its range of bytes.
  private func part(
    _ element: XMLElement, _ url: String, _ range: String
  ) throws(ErrorReport) -> SegmentPlaylist.Part {
    var part = SegmentPlaylist.Part(url: base)
    if let text = element[url] { part.url = try SegmentListing.address(text, from: base) }
    guard let text = element[range] else { return part }
    let ends = text.split(separator: "-").map { Int64($0) }
    guard ends.count == 2, let first = ends[0], let last = ends[1], (0..<1 << 48).contains(last),
      first <= last
    else { throw DASHManifest.broken("a byte range is \(text.prefix(40))") }
    part.range = first..<last + 1
    return part
  }

  /// A template with its names filled in (section 5.3.9.4.4).
  private func address(_ template: String, _ slot: Slot) throws(ErrorReport) -> String {
    var text = ""
    for (index, piece) in template.split(separator: "$", omittingEmptySubsequences: false).enumerated() {
      text += index % 2 == 0 ? String(piece) : try filled(piece, slot)
    }
    return try SegmentListing.address(text, from: base)
  }

  private func filled(_ name: Substring, _ slot: Slot) throws(ErrorReport) -> String {
    let words = name.split(separator: "%", maxSplits: 1)
    let value: String? =
      switch words.first ?? "" {
      case "": "$"
      case "RepresentationID": levels.last?["id"]
      case "Bandwidth": levels.last?["bandwidth"]
      case "Number": String(slot.number)
      case "Time": String(slot.time)
      default: nil
      }
    // `%05d`
    let width = words.count < 2 ? 0 : words[1].last == "d" ? Int(words[1].dropLast()) : nil
    guard let value, let width, (0...20).contains(width) else {
      throw DASHManifest.broken("a template has the name \(String(name).quoted)")
    }
    return String(repeating: "0", count: max(0, width - value.count)) + value
  }

  // MARK: What is said of the segments

  private func value(_ name: String) -> String? {
    guard let kind else { return nil }
    return levels.reversed().lazy.compactMap { $0.child(kind)?[name] }.first
  }

  private func element(_ name: String) -> XMLElement? {
    guard let kind else { return nil }
    return levels.reversed().lazy.compactMap { $0.child(kind)?.child(name) }.first
  }

  private func number(_ name: String, in range: ClosedRange<Int>) throws(ErrorReport) -> Int? {
    try value(name).map { (text) throws(ErrorReport) in try Self.number(text, name, in: range) }
  }

  private static func number(
    _ element: XMLElement, _ name: String, in range: ClosedRange<Int>
  ) throws(ErrorReport) -> Int? {
    try element[name].map { (text) throws(ErrorReport) in try number(text, name, in: range) }
  }

  private static func number(
    _ text: String, _ name: String, in range: ClosedRange<Int>
  ) throws(ErrorReport) -> Int {
    guard let number = Int(text), range.contains(number) else {
      throw DASHManifest.broken("\(name) is \(text.prefix(40))")
    }
    return number
  }
}
