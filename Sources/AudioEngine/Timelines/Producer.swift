import WireProtocol

/// How sound is encoded; the same for every track of the engine.
package struct EncodingSettings: Codable, Sendable, Equatable {
  /// 6,000 to 510,000; libopus's variable rate around it.
  package var bitsPerSecond = 128_000
  /// 0 to 10.
  package var complexity = 10

  package init() {}
}

/// Fills timelines: opens the source, demuxes, decodes or passes through, encodes, appends.
package struct Producer: Sendable {
  /// Packets produced between two looks at who needs the CPU more: one second.
  static let packetsPerPermit = 50
  /// Of a worker that reads ahead: the pacer, the doors and other programs go first.
  static let niceness: Int32 = 10
  /// Packets there are before a session begins: a producer that is late once leaves no gap at the start.
  /// Four packets more cost about a millisecond.
  static let packetsBeforeReady = 5
  /// Decoding begins this much before a seek's position: codecs need to settle (RFC 7845, section 4.6, and
  /// MP3's bit reservoir).
  static let seekLeadMilliseconds = 250

  let mediaRoot: MediaRoot?
  let web: WebAccess
  let permits: CPUPermits
  let settings: EncodingSettings
  /// Where complete tracks are kept and looked for; nil for nowhere.
  let disk: DiskCache?
  /// How far a timeline is read ahead of its furthest session where the cache has no room.
  let readAheadPackets: Int
  /// Whether a timeline may be read further.
  let hasRoom: @Sendable (Timeline) -> Bool
  /// Called when a timeline has to be produced from its source.
  let onProduction: @Sendable () -> Void
  /// Called when a timeline became ready, complete or failed.
  let onChange: @Sendable (Timeline) -> Void

  package init(
    mediaRoot: MediaRoot?, web: WebAccess, permits: CPUPermits, settings: EncodingSettings,
    disk: DiskCache?, readAheadPackets: Int, hasRoom: @escaping @Sendable (Timeline) -> Bool,
    onProduction: @escaping @Sendable () -> Void, onChange: @escaping @Sendable (Timeline) -> Void
  ) {
    self.mediaRoot = mediaRoot
    self.web = web
    self.permits = permits
    self.settings = settings
    self.disk = disk
    self.readAheadPackets = readAheadPackets
    self.hasRoom = hasRoom
    self.onProduction = onProduction
    self.onChange = onChange
  }

  /// Produces a whole timeline. Runs on a worker thread and blocks it.
  ///
  /// - Parameter submittedNanoseconds: when the job was handed to the worker pool.
  package func produce(_ timeline: Timeline, submittedNanoseconds: UInt64) {
    do throws(ErrorReport) {
      EngineThread.setNiceness(0)
      timeline.journal.record(.queue, since: submittedNanoseconds)
      guard !timeline.isCancelled else { throw .superseded }
      let isReplayed = try replay(timeline)
      if !isReplayed { try run(timeline) }
      timeline.finish(failure: nil)
      onChange(timeline)
      if !isReplayed { disk?.store(timeline) }
    } catch {
      timeline.finish(failure: error)
      onChange(timeline)
    }
  }

  /// Fills a timeline from the disk cache.
  ///
  /// - Returns: false where the track is not there.
  private func replay(_ timeline: Timeline) throws(ErrorReport) -> Bool {
    guard let disk else { return false }
    let permit = HeldPermit(permits, timeline: timeline)
    permit.acquire()
    let opening = MonotonicClock.nowNanoseconds
    let firstIndex = timeline.key.startMilliseconds / WireLimits.packetDurationMilliseconds
    guard var reader = disk.find(timeline.key), firstIndex < reader.header.packetCount else { return false }
    timeline.becomeOpen(reader.header.identity)
    timeline.journal.record(.connect, since: opening, "from the disk cache")
    var writer = Timeline.Writer(timeline)
    var pace = Pace(details: reader.header.details, since: MonotonicClock.nowNanoseconds)
    do throws(UnfitTrackFile) {
      for _ in 0..<firstIndex { _ = try reader.withNext { _ in } }
      while try reader.withNext({ writer.append($0) }) {
        guard !timeline.isCancelled else { break }
        keep(&pace, writer, after: .goOn, permit: permit)
      }
    } catch {
      throw ErrorReport(
        .internal, "the disk cache's copy changed while it was read: \(error.reason)", hint: "play it again")
    }
    guard !timeline.isCancelled else { throw .superseded }
    keep(&pace, writer, after: .ended, permit: permit)
    return true
  }

  private func run(_ timeline: Timeline) throws(ErrorReport) {
    onProduction()
    let permit = HeldPermit(permits, timeline: timeline)
    let input = try open(timeline.key.source, permit)
    timeline.becomeOpen(input.identity)
    permit.acquire()
    let probing = MonotonicClock.nowNanoseconds
    var demuxer = try Demuxer(input: input, isCancelled: permit.isCancelled)
    timeline.journal.record(.probe, since: probing)
    let producing = MonotonicClock.nowNanoseconds

    let start = timeline.key.startMilliseconds
    if start > 0 {
      if let duration = demuxer.durationMilliseconds, start >= duration, !demuxer.isDurationEstimated {
        throw Self.behindEnd(start, duration)
      }
      try demuxer.seek(toMilliseconds: max(0, start - Self.seekLeadMilliseconds))
    }
    var writer = Timeline.Writer(timeline)
    let isPassthrough = timeline.key.volume == 1 && demuxer.opusHead.map(OpusPassthrough.fits(head:)) ?? false
    var details = TrackDetails(
      title: demuxer.title, durationMilliseconds: demuxer.durationMilliseconds, codec: demuxer.codecName,
      isPassthrough: isPassthrough)
    details.isDurationEstimated = demuxer.isDurationEstimated

    if isPassthrough {
      var pipeline = PassthroughPipeline(startMilliseconds: start)
      let end = try drive(
        &pipeline, &demuxer, &writer, permit: permit, details, since: producing)
      switch end {
      case .ended: return try checkEnd(demuxer, writer)
      case .landedBehind: try demuxer.seek(toMilliseconds: 0)
      case .goOn, .needsTranscoding: demuxer.putBack()
      }
    }
    // From the start, or from where passing through ended.
    let transcodeStart = timeline.position(ofPacket: writer.count)
    if isPassthrough {
      details.isPassthrough = false
    }
    var pipeline = TranscodePipeline(
      decoder: try demuxer.makeDecoder(),
      encoder: try OpusEncoder(bitsPerSecond: settings.bitsPerSecond, complexity: settings.complexity),
      gain: timeline.key.volume, startMilliseconds: transcodeStart, endSeconds: demuxer.exactEndSeconds)
    var end = try drive(
      &pipeline, &demuxer, &writer, permit: permit, details, since: producing)
    if end == .landedBehind {
      // An index that led too far: decode from the very start and throw away.
      try demuxer.seek(toMilliseconds: 0)
      pipeline.restart()
      end = try drive(
        &pipeline, &demuxer, &writer, permit: permit, details, since: producing)
    }
    guard end == .ended else {
      throw ErrorReport(
        .sourceCorrupt, "the source has no time stamps to find \(transcodeStart) ms by",
        hint: "play it from its start", stage: .decode)
    }
    try checkEnd(demuxer, writer)
  }

  private func open(_ source: MediaSource, _ permit: HeldPermit) throws(ErrorReport) -> any MediaInput {
    switch source {
    case .web(let url): return try HTTPInput(WebRequest(url: url), access: web, permit: permit)
    case .file(let path):
      guard let mediaRoot else {
        throw ErrorReport(
          .sourceForbidden, "media:\(path): the engine has no media root", hint: "start it with --media-root",
          stage: .resolve)
      }
      let opening = MonotonicClock.nowNanoseconds
      let input = try mediaRoot.open(path)
      permit.journal.record(.connect, since: opening)
      return input
    }
  }

  /// Runs a pipeline, a second a permit, until it ends or wants something else.
  private func drive(
    _ pipeline: inout some PacketPipeline & ~Copyable, _ demuxer: inout Demuxer,
    _ writer: inout Timeline.Writer, permit: HeldPermit, _ details: TrackDetails,
    since producing: UInt64
  ) throws(ErrorReport) -> PipelineStep {
    var pace = Pace(details: details, since: producing, nextRest: writer.count + Self.packetsPerPermit)
    while true {
      guard !writer.timeline.isCancelled else { throw .superseded }
      let step = try pipeline.advance(&demuxer, into: &writer)
      keep(&pace, writer, after: step, permit: permit)
      guard case .goOn = step else { return step }
    }
  }

  /// What a production goes by, between its steps.
  private struct Pace {
    var details: TrackDetails
    /// When the first packet was begun.
    var since: UInt64
    /// At how many packets it looks next whether others need the CPU more.
    var nextRest = Producer.packetsPerPermit
  }

  /// What follows every step: the track is told ready, and a second of sound is a permit's worth.
  private func keep(
    _ pace: inout Pace, _ writer: borrowing Timeline.Writer, after step: PipelineStep, permit: HeldPermit
  ) {
    let timeline = writer.timeline
    let isReady = writer.count >= Self.packetsBeforeReady || step != .goOn && writer.count > 0
    if isReady, timeline.phase == .opening {
      timeline.journal.record(.firstPacket, since: pace.since)
      timeline.becomeReady(pace.details)
      // Whoever asked has waited until now; from here on it is ahead of its listeners.
      EngineThread.setNiceness(Self.niceness)
      onChange(timeline)
    }
    guard step == .goOn, writer.count >= pace.nextRest else { return }
    pace.nextRest = writer.count + Self.packetsPerPermit
    permit.release()
    while !timeline.isCancelled, !hasRoom(timeline) {
      // It will not be kept, so the pacer frees what has been played, also of a source that never gets
      // far ahead.
      timeline.becomeTransient()
      guard timeline.packetsAhead >= readAheadPackets else { break }
      timeline.rest()
    }
    permit.acquire()
  }

  private static func behindEnd(_ position: Int, _ duration: Int?) -> ErrorReport {
    let end = duration.map { " at \($0) ms" } ?? ""
    return ErrorReport(
      .invalidCommand, "the position \(position) ms lies behind the end\(end)",
      hint: "ask for an earlier one",
      stage: .probe)
  }

  /// Nothing at all, or a good deal less than the source says it has, is an error to tell.
  private func checkEnd(
    _ demuxer: borrowing Demuxer, _ writer: borrowing Timeline.Writer
  ) throws(ErrorReport) {
    let start = writer.timeline.key.startMilliseconds
    guard writer.count > 0 else {
      if start > 0 { throw Self.behindEnd(start, demuxer.durationMilliseconds) }
      throw ErrorReport(
        .sourceCorrupt, "nothing in the source could be decoded as \(demuxer.codecName)",
        hint: "check the file", stage: .decode)
    }
    guard let duration = demuxer.durationMilliseconds, !demuxer.isDurationEstimated else { return }
    let end = writer.timeline.position(ofPacket: writer.count)
    guard end < duration - 1_000 else { return }
    throw ErrorReport(
      .sourceTruncated, "the source ends at \(end) ms of its \(duration) ms", hint: "check the file",
      stage: .decode)
  }
}
