import WireProtocol

/// A manifest of DASH (ISO/IEC 23009-1): periods one after the other, and in each a choice of the same sound.
///
/// Periods that are elsewhere (`xlink:href`) are left out, and the server's own clock stands for `UTCTiming`.
package struct DASHManifest {
  private static let maximumPeriodCount = 1_000

  private let root: XMLElement
  private let document: WebDocument
  private let representationID: String?
  private let isLive: Bool

  /// A stretch of the presentation.
  struct Period {
    let element: XMLElement
    let startSeconds: Double
    /// Nil where its end is not known yet.
    let durationSeconds: Double?
    /// How much of it there is by now.
    let availableSeconds: Double
  }

  /// - Parameter representationID: the one that is wanted, as yt-dlp calls it; nil for the best.
  /// - Throws: `source_corrupt`, naming what is wrong.
  package init(_ document: WebDocument, representationID: String? = nil) throws(ErrorReport) {
    root = try XMLElement(document.bytes)
    self.document = document
    self.representationID = representationID
    isLive = root["type"] == "dynamic"
  }

  static func broken(_ what: String) -> ErrorReport {
    ErrorReport(
      .sourceCorrupt, "the DASH manifest cannot be read: \(what)", hint: SegmentListing.hint, stage: .probe)
  }

  /// What it leads to.
  ///
  /// - Throws: `source_corrupt`, naming what is wrong; `source_forbidden` for an address that is no web address;
  ///   `source_not_audio` where there is no sound, or it is encrypted.
  package func listing() throws(ErrorReport) -> SegmentListing {
    var playlist = SegmentPlaylist(
      url: try root.child("Location").map { (location) throws(ErrorReport) in
        try SegmentListing.address(location.text, from: document.url)
      } ?? document.url)
    playlist.isEnded = !isLive
    var hasSound = false
    let periods = try periods()
    for period in periods {
      guard let levels = try DASHChoice(period.element, representationID).levels else { continue }
      hasSound = true
      let addresses = try DASHAddresses(
        [root] + levels, manifestURL: document.url, period, isLive: isLive, windowSeconds: windowSeconds)
      if let url = addresses.fileURL, periods.count == 1, !isLive { return .file(url: url) }
      var segments = try addresses.segments()
      if !playlist.segments.isEmpty, !segments.isEmpty { segments[0].isDiscontinuous = true }
      playlist.segments += segments
      guard playlist.segments.count <= SegmentPlaylist.maximumSegmentCount else {
        throw Self.broken("it lists over \(SegmentPlaylist.maximumSegmentCount) segments")
      }
    }
    guard hasSound else {
      throw ErrorReport(
        .sourceNotAudio, "the DASH manifest names no sound", hint: SegmentListing.hint, stage: .probe)
    }
    try setTimes(of: &playlist)
    return .segments(playlist)
  }

  private var windowSeconds: Double? {
    get throws(ErrorReport) { try DASHTime.duration(root, "timeShiftBufferDepth") }
  }

  /// Each period begins where it says, or where the one before ends, and ends where the next one begins (section 5.3.2).
  private func periods() throws(ErrorReport) -> [Period] {
    let whole = try DASHTime.duration(root, "mediaPresentationDuration")
    var elapsed = Double.infinity
    if isLive {
      guard let begin = try DASHTime.moment(root, "availabilityStartTime") else {
        throw Self.broken("a live one does not say when it began")
      }
      elapsed = document.servedSeconds - begin
      guard DASHTime.seconds.contains(abs(elapsed)) else { throw Self.broken("it began too long ago") }
    }
    let elements = root.children("Period")
    guard elements.count <= Self.maximumPeriodCount else {
      throw Self.broken("it has over \(Self.maximumPeriodCount) periods")
    }
    var periods: [Period] = []
    var end: Double? = 0
    for (index, element) in elements.enumerated() {
      let next = index + 1 < elements.count ? try DASHTime.duration(elements[index + 1], "start") : nil
      guard let start = try DASHTime.duration(element, "start") ?? end else {
        throw Self.broken("a period does not say when it begins")
      }
      let last = index + 1 == elements.count ? whole : nil
      let duration = try DASHTime.duration(element, "duration") ?? (next ?? last).map { $0 - start }
      guard duration ?? 0 >= 0 else { throw Self.broken("a period ends before it begins") }
      end = duration.map { start + $0 }
      // The clock that `Date` tells is cut to seconds, and a segment is written a moment after it has ended.
      let available = min(elapsed - start - DASHTime.clockMarginSeconds, duration ?? .infinity)
      periods.append(
        Period(
          element: element, startSeconds: start, durationSeconds: duration,
          availableSeconds: max(0, available)))
    }
    return periods
  }

  private func setTimes(of playlist: inout SegmentPlaylist) throws(ErrorReport) {
    let update = try DASHTime.duration(root, "minimumUpdatePeriod")
    let longest = playlist.segments.map(\.seconds).max() ?? update ?? 1
    let delay = try DASHTime.duration(root, "suggestedPresentationDelay")
    playlist.joinSeconds = max(DASHTime.liveSegments * longest, delay ?? 0)
    // There is a new segment by then, whatever it says of its updates.
    playlist.reloadSeconds = min(max(update ?? 0, longest / 2), longest)
  }
}
