import WireProtocol

/// How sound is encoded; the same for every track of the engine.
package struct EncodingSettings: Sendable {
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
  /// How far a timeline is read ahead of its furthest session where the cache has no room.
  let readAheadPackets: Int
  /// Whether a timeline may be read further.
  let hasRoom: @Sendable (Timeline) -> Bool
  /// Called when a timeline became ready, complete or failed.
  let onChange: @Sendable (Timeline) -> Void

  package init(
    mediaRoot: MediaRoot?, web: WebAccess, permits: CPUPermits, settings: EncodingSettings,
    readAheadPackets: Int, hasRoom: @escaping @Sendable (Timeline) -> Bool,
    onChange: @escaping @Sendable (Timeline) -> Void
  ) {
    self.mediaRoot = mediaRoot
    self.web = web
    self.permits = permits
    self.settings = settings
    self.readAheadPackets = readAheadPackets
    self.hasRoom = hasRoom
    self.onChange = onChange
  }

  /// Produces a whole timeline. Runs on a worker thread and blocks it.
  ///
  /// - Parameter submittedNanoseconds: when the job was handed to the worker pool.
  package func produce(_ timeline: Timeline, submittedNanoseconds: UInt64) {
    do {
      EngineThread.setNiceness(0)
      timeline.journal.record(.queue, since: submittedNanoseconds)
      try run(timeline)
      timeline.finish(failure: nil)
    } catch {
      timeline.finish(failure: error)
    }
    onChange(timeline)
  }

  private func run(_ timeline: Timeline) throws(ErrorReport) {
    guard !timeline.isCancelled else { throw .superseded }
    let permit = HeldPermit(permits, timeline: timeline)
    let opening = MonotonicClock.nowNanoseconds
    let input = try open(timeline.key.source, permit)
    timeline.journal.record(.connect, since: opening)
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
    var details = details(of: demuxer, timeline.key.source, isPassthrough: isPassthrough)

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
    case .web(let url): return try HTTPInput(url: url, access: web, permit: permit)
    case .file(let path):
      guard let mediaRoot else {
        throw ErrorReport(
          .sourceForbidden, "media:\(path): the engine has no media root", hint: "start it with --media-root",
          stage: .resolve)
      }
      return try mediaRoot.open(path)
    }
  }

  /// Runs a pipeline, a second a permit, until it ends or wants something else.
  private func drive(
    _ pipeline: inout some PacketPipeline & ~Copyable, _ demuxer: inout Demuxer,
    _ writer: inout Timeline.Writer, permit: HeldPermit, _ details: TrackDetails,
    since producing: UInt64
  ) throws(ErrorReport) -> PipelineStep {
    let timeline = writer.timeline
    var nextRest = writer.count + Self.packetsPerPermit
    while true {
      guard !timeline.isCancelled else { throw .superseded }
      let step = try pipeline.advance(&demuxer, into: &writer)
      let isReady = writer.count >= Self.packetsBeforeReady || step != .goOn && writer.count > 0
      if isReady, timeline.phase == .opening {
        timeline.journal.record(.firstPacket, since: producing)
        timeline.becomeReady(details)
        // Whoever asked has waited until now; from here on it is ahead of its listeners.
        EngineThread.setNiceness(Self.niceness)
        onChange(timeline)
      }
      guard case .goOn = step else { return step }
      if writer.count >= nextRest {
        nextRest = writer.count + Self.packetsPerPermit
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
    }
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
