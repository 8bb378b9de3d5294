import ServiceSupport
import WireProtocol

/// Fills timelines: opens the source, lets a decoder process demux and transcode (or pass through) it, appends the
/// packets.
package struct Producer: Sendable {
  /// The niceness of a worker that is two seconds ahead: the pacer, the endpoints and other programs go first. One
  /// that is not would pass its lateness on to its listeners.
  static let niceness: Int32 = 10
  static let packetsBeforeNice = 100

  let opener: SourceOpener
  let permits: CPUPermits
  let admission: TranscodeAdmission
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
    opener: SourceOpener, permits: CPUPermits, admission: TranscodeAdmission, settings: EncodingSettings,
    disk: DiskCache?, readAheadPackets: Int, hasRoom: @escaping @Sendable (Timeline) -> Bool,
    onProduction: @escaping @Sendable () -> Void, onChange: @escaping @Sendable (Timeline) -> Void
  ) {
    self.opener = opener
    self.permits = permits
    self.admission = admission
    self.settings = settings
    self.disk = disk
    self.readAheadPackets = readAheadPackets
    self.hasRoom = hasRoom
    self.onProduction = onProduction
    self.onChange = onChange
  }

  /// Produces a whole timeline. Runs on a worker thread and blocks it.
  ///
  /// - Parameters:
  ///   - submittedNanoseconds: when the job was handed to the worker pool.
  ///   - slot: the worker's.
  package func produce(_ timeline: Timeline, submittedNanoseconds: UInt64, slot: WorkerSlot) {
    let permit = HeldPermit(permits, for: timeline, slot: slot)
    defer { timeline.liveScore?.end() }
    do throws(ErrorReport) {
      EngineThread.setNiceness(0)
      timeline.journal.record(.queue, since: submittedNanoseconds)
      guard !timeline.isCancelled else { throw .superseded }
      if case .score(let source) = timeline.key.source {
        try render(source, timeline, permit)
        permit.release()
        timeline.finish(failure: nil)
        return onChange(timeline)
      }
      let isReplayed = try replay(timeline, permit)
      if !isReplayed { try run(timeline, permit) }
      permit.release()
      timeline.finish(failure: nil)
      onChange(timeline)
      if !isReplayed { disk?.store(timeline) }
    } catch {
      permit.release()
      timeline.finish(failure: error)
      onChange(timeline)
    }
  }

  /// Fills a timeline from the disk cache.
  ///
  /// - Returns: false where the track is not there.
  private func replay(_ timeline: Timeline, _ permit: HeldPermit) throws(ErrorReport) -> Bool {
    guard let disk else { return false }
    permit.acquire()
    let opening = MonotonicClock.nowNanoseconds
    let firstIndex = timeline.key.startMilliseconds / WireLimits.packetDurationMilliseconds
    guard var reader = disk.find(timeline.key), firstIndex < reader.header.packetCount else { return false }
    timeline.becomeOpen(reader.header.identity)
    timeline.journal.record(.connect, since: opening, "from the disk cache")
    var writer = Timeline.Writer(timeline)
    var pace = Pace(
      details: reader.header.details, since: MonotonicClock.nowNanoseconds,
      timeSlice: TimeSlice(firstPacket: 0))
    do throws(UnfitTrackFile) {
      for _ in 0..<firstIndex { _ = try reader.withNext { _ in } }
      while try reader.withNext({ writer.append($0) }) {
        guard !timeline.isCancelled else { break }
        keep(&pace, writer, after: .hasMore, permit: permit, measure: nil)
      }
    } catch {
      throw ErrorReport(
        .internal, "the disk cache's copy changed while it was read: \(error.reason)", hint: "play it again")
    }
    guard !timeline.isCancelled else { throw .superseded }
    keep(&pace, writer, after: .ended, permit: permit, measure: nil)
    return true
  }

  private func run(_ timeline: Timeline, _ permit: HeldPermit) throws(ErrorReport) {
    onProduction()
    var opened = try opener.open(
      timeline.key.source, permit, startMilliseconds: timeline.key.startMilliseconds)
    timeline.becomeOpen(opened.identity)
    if opened.isLive { timeline.becomeLive() }
    let facts = opened.source.facts
    let start = timeline.key.startMilliseconds
    if start > 0, let duration = facts.durationMilliseconds, start >= duration, !facts.isDurationEstimated {
      throw Self.pastEnd(start, duration)
    }
    let isPassthrough = timeline.key.allowsPassthrough && facts.fitsPassthrough
    var production = Decoding(
      writer: Timeline.Writer(timeline),
      details: opener.details(of: opened, timeline.key.source, isPassthrough: isPassthrough))
    if opened.mayBeLive { production.pace = SourcePace(now: production.since) }
    defer { if production.isTranscoding { admission.leave(timeline) } }
    var backoff = LiveBackoff()
    while true {
      var failure = produce(opened.source, &production, permit)
      if failure == nil {
        do throws(ErrorReport) {
          if try opened.source.beginNextPart() { continue }
        } catch {
          failure = error
        }
      }
      // What does not say that it is live may end.
      let goesOn = timeline.isLive && (failure != nil || opened.isLive)
      guard goesOn, production.writer.count > 0, !timeline.isCancelled else {
        if let failure { throw failure }
        return try checkEnd(facts, production.writer)
      }
      opened = try reopen(timeline, permit, after: failure, &backoff)
      if let metadata = opened.source.facts.metadata { timeline.note(metadata) }
    }
  }

  /// - Returns: why it ended, where that was not the source's own end.
  private func produce(
    _ source: DecodedSource, _ production: inout Decoding, _ permit: HeldPermit
  ) -> ErrorReport? {
    let timeline = production.writer.timeline
    let rest = { restWhileAhead(timeline, permit) }
    do throws(ErrorReport) {
      try source.produce(timeline.key, settings, rest: rest) {
        (call, event, count: inout Int) throws(DecoderFailure) in
        defer { count = production.writer.count }
        try take(event, call, &production, permit)
      }
      return nil
    } catch {
      return error
    }
  }

  /// What comes from a decoder process.
  private struct Decoding: ~Copyable {
    var writer: Timeline.Writer
    var details: TrackDetails
    /// When the first packet was begun.
    let since = MonotonicClock.nowNanoseconds
    var isTranscoding = false
    var timeSliceFirstPacket = 0
    /// Of a source that may be live without saying so; nil once that is known.
    var pace: SourcePace?
  }

  private func take(
    _ event: DecoderCall.Event, _ call: DecoderCall, _ production: inout Decoding, _ permit: HeldPermit
  ) throws(DecoderFailure) {
    let timeline = production.writer.timeline
    switch event {
    case .opened, .picture: throw call.broken()
    case .transcodes where production.isTranscoding: try call.resume()
    case .transcodes:
      production.details.isPassthrough = false
      do throws(ErrorReport) {
        // What is heard already continues.
        let mustEnter = timeline.isContinuation || production.writer.count > 0
        try admission.enter(timeline, mustEnter: mustEnter) { isWaiting in
          isWaiting ? permit.release() : permit.acquire()
        }
      } catch {
        throw .report(error)
      }
      production.isTranscoding = true
      try call.resume()
    case .packets(let bytes, let cpuNanoseconds, let isTimeSliceOver):
      var packets = PacketList(bytes)
      while let packet = packets.next() { production.writer.append(packet) }
      guard !packets.isBroken else { throw call.broken() }
      becomeReady(
        timeline, packetCount: production.writer.count, production.details, since: production.since)
      watchPace(of: &production)
      if isTimeSliceOver { try endTimeSlice(call, &production, cpuNanoseconds, permit) }
    case .ended:
      becomeReady(
        timeline, packetCount: production.writer.count, production.details, since: production.since,
        isLast: true)
    }
  }

  private func watchPace(of production: inout Decoding) {
    guard production.pace != nil else { return }
    let timeline = production.writer.timeline
    let now = MonotonicClock.nowNanoseconds
    if timeline.packetsAhead >= readAheadPackets {
      // It waits for its listeners, and comes at their speed.
      production.pace = SourcePace(now: now)
    } else if production.pace!.isLive(packetCount: production.writer.count, now: now) {
      production.pace = nil
      timeline.becomeLive()
    }
  }

  private func endTimeSlice(
    _ call: DecoderCall, _ production: inout Decoding, _ cpuNanoseconds: UInt64, _ permit: HeldPermit
  ) throws(DecoderFailure) {
    let timeline = production.writer.timeline
    if production.isTranscoding {
      admission.record(
        packets: production.writer.count - production.timeSliceFirstPacket, nanoseconds: cpuNanoseconds)
    }
    production.timeSliceFirstPacket = production.writer.count
    let niceness = awaitTimeSlice(timeline, permit)
    guard !timeline.isCancelled else { throw .report(.superseded) }
    try call.resume(niceness: niceness)
  }

  /// Ends a worker's time slice and waits for its next one.
  ///
  /// - Returns: how far its thread is to stand behind others in it.
  private func awaitTimeSlice(_ timeline: Timeline, _ permit: HeldPermit) -> Int32 {
    permit.endTimeSlice()
    restWhileAhead(timeline, permit)
    permit.acquire()
    // Only now: while it waited, its listeners went on.
    return timeline.packetsAhead < Self.packetsBeforeNice ? 0 : Self.niceness
  }

  /// Runs a pipeline, a time slice a permit, until it ends or wants something else.
  func drive(
    _ writer: inout Timeline.Writer, permit: HeldPermit, _ details: TrackDetails, since producing: UInt64,
    measure: Measure?,
    advance: (inout Timeline.Writer) throws(ErrorReport) -> PipelineStep
  ) throws(ErrorReport) -> PipelineStep {
    var pace = Pace(details: details, since: producing, timeSlice: TimeSlice(firstPacket: writer.count))
    while true {
      guard !writer.timeline.isCancelled else { throw .superseded }
      let step = try advance(&writer)
      keep(&pace, writer, after: step, permit: permit, measure: measure)
      guard case .hasMore = step else { return step }
    }
  }

  /// Waits while the timeline is far enough ahead and the cache has no room for more.
  private func restWhileAhead(_ timeline: Timeline, _ permit: HeldPermit) {
    while !timeline.isCancelled, timeline.isLive || !hasRoom(timeline) {
      // It will not be kept, so the pacer frees what has been played, also of a source that never gets far
      // ahead.
      timeline.markUncacheable()
      guard timeline.packetsAhead >= readAheadPackets else { return }
      permit.pause()
      timeline.rest(milliseconds: 1_000)
    }
  }

  /// Told what packets have cost in CPU time.
  typealias Measure = (_ packets: Int, _ nanoseconds: UInt64) -> Void

  /// What a production goes by, between its steps.
  private struct Pace {
    let details: TrackDetails
    /// When the first packet was begun.
    let since: UInt64
    var timeSlice: TimeSlice
  }

  /// What follows every step: the track is told ready, and after its time slice it lets others have the CPU.
  private func keep(
    _ pace: inout Pace, _ writer: borrowing Timeline.Writer, after step: PipelineStep, permit: HeldPermit,
    measure: Measure?
  ) {
    let timeline = writer.timeline
    becomeReady(
      timeline, packetCount: writer.count, pace.details, since: pace.since, isLast: step != .hasMore)
    guard step == .hasMore, pace.timeSlice.isOver(packetCount: writer.count) || permit.isNeededMore else {
      return
    }
    let cost = pace.timeSlice.cost(packetCount: writer.count)
    measure?(cost.packets, cost.nanoseconds)
    EngineThread.setNiceness(awaitTimeSlice(timeline, permit))
    pace.timeSlice = TimeSlice(firstPacket: writer.count)
  }

  /// Tells the track ready once there is enough of it.
  func becomeReady(
    _ timeline: Timeline, packetCount: Int, _ details: TrackDetails, since producing: UInt64,
    isLast: Bool = false
  ) {
    let isReady = packetCount >= Timeline.packetsBeforeReady || isLast && packetCount > 0
    guard isReady, timeline.phase == .opening else { return }
    timeline.journal.record(.firstPacket, since: producing)
    timeline.becomeReady(details)
    onChange(timeline)
  }

  static func pastEnd(_ position: Int, _ duration: Int?) -> ErrorReport {
    let end = duration.map { " at \($0) ms" } ?? ""
    return ErrorReport(
      .invalidCommand, "the position \(position) ms is past the end\(end)",
      hint: "ask for an earlier one",
      stage: .probe)
  }

  /// Nothing at all, or a good deal less than the source says it has, is an error to tell.
  private func checkEnd(
    _ facts: SourceFacts, _ writer: borrowing Timeline.Writer
  ) throws(ErrorReport) {
    let start = writer.timeline.key.startMilliseconds
    guard writer.count > 0 else {
      if start > 0 { throw Self.pastEnd(start, facts.durationMilliseconds) }
      throw ErrorReport(
        .sourceCorrupt, "nothing in the source could be decoded as \(facts.codecName)",
        hint: "check the file", stage: .decode)
    }
    guard let duration = facts.durationMilliseconds, !facts.isDurationEstimated else { return }
    let end = writer.timeline.position(ofPacket: writer.count)
    guard end < duration - 1_000 else { return }
    throw ErrorReport(
      .sourceTruncated, "the source ends at \(end) ms of its \(duration) ms", hint: "check the file",
      stage: .decode)
  }
}
