import ServiceSupport
import WireProtocol

/// Producing a score's timeline: rendered, encoded, appended.
extension Producer {
  /// Packets an endless score is produced ahead: what joins it is heard this much later, and a machine that is
  /// busy for less is not heard.
  private static let liveScorePacketsAhead = 25
  /// How long its producer rests.
  private static let liveScoreRestMilliseconds = 100

  func render(
    _ source: ScoreSource, _ timeline: Timeline, _ permit: HeldPermit
  ) throws(ErrorReport) {
    onProduction()
    if let length = source.score.length, timeline.key.startMilliseconds >= Self.milliseconds(length) {
      throw Self.pastEnd(timeline.key.startMilliseconds, Self.milliseconds(length))
    }
    timeline.becomeOpen(.computed)
    let rendering = MonotonicClock.nowNanoseconds
    try admission.enter(timeline, mustEnter: timeline.isContinuation) { isWaiting in
      isWaiting ? permit.release() : permit.acquire()
    }
    defer { admission.leave(timeline) }
    permit.acquire()
    let key = timeline.key
    var pipeline = ScorePipeline(
      source.score, encoder: try OpusEncoder.make(settings, kilobitsPerSecond: key.bitrateKilobits),
      volume: key.volume, startMilliseconds: key.startMilliseconds)
    var writer = Timeline.Writer(timeline)
    if let liveScore = timeline.liveScore {
      try perform(liveScore, &pipeline, &writer, permit, Self.details(of: source.score), since: rendering)
    } else {
      _ = try drive(
        &writer, permit: permit, Self.details(of: source.score), since: rendering, measure: admission.record
      ) { (writer) throws(ErrorReport) in try pipeline.advance(into: &writer) }
    }
  }

  /// Goes on until nobody listens, never far ahead.
  private func perform(
    _ liveScore: LiveScoreControl, _ pipeline: inout ScorePipeline, _ writer: inout Timeline.Writer,
    _ permit: HeldPermit, _ details: TrackDetails, since rendering: UInt64
  ) throws(ErrorReport) {
    let timeline = writer.timeline
    timeline.markUncacheable()
    while !timeline.isCancelled {
      // Also while the session is paused.
      pipeline.take(liveScore.take())
      guard Self.isBehind(timeline) else {
        permit.pause()
        timeline.rest(milliseconds: Self.liveScoreRestMilliseconds)
        continue
      }
      permit.acquire()
      let timeSlice = TimeSlice(firstPacket: writer.count)
      // On a machine that does not keep up, others have their turns all the same.
      repeat {
        _ = try pipeline.advance(into: &writer)
        becomeReady(timeline, packetCount: writer.count, details, since: rendering)
      } while Self.isBehind(timeline) && !timeSlice.isOver(packetCount: writer.count) && !permit.isNeededMore
      let cost = timeSlice.cost(packetCount: writer.count)
      admission.record(packets: cost.packets, nanoseconds: cost.nanoseconds)
      permit.endTimeSlice()
    }
    throw .superseded
  }

  private static func isBehind(_ timeline: Timeline) -> Bool {
    timeline.packetsAhead < liveScorePacketsAhead
  }

  private static func milliseconds(_ samples: Int) -> Int { samples / ScoreLimits.samplesPerMillisecond }

  private static func details(of score: Score) -> TrackDetails {
    var details = TrackDetails(
      title: score.title, durationMilliseconds: score.length.map(milliseconds),
      codec: "score", isPassthrough: false)
    details.isLive = score.length == nil
    return details
  }
}
