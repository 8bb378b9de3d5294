import ServiceSupport
import WireProtocol

/// Sources without an end: what breaks off is asked for again, where it is by then, for as long as somebody listens.
extension Producer {
  /// How soon a resting producer looks whether it is still wanted.
  private static let waitSliceMilliseconds = 1_000

  /// Connects anew, after a pause, again and again. Listeners hear silence meanwhile.
  func reopen(
    _ timeline: Timeline, _ permit: HeldPermit, after failure: ErrorReport?, _ backoff: inout LiveBackoff
  ) throws(ErrorReport) -> OpenedSource {
    let broken = MonotonicClock.nowNanoseconds
    var reason = failure?.message ?? "the server has ended the stream"
    while true {
      let pause = backoff.nextPause(packetCount: timeline.packetCount)
      timeline.journal.record(.restart, since: broken, "\(reason); asked again after \(pause) ms")
      permit.pause()
      try wait(milliseconds: pause, timeline)
      do throws(ErrorReport) {
        return try opener.open(timeline.key.source, permit)
      } catch {
        guard !timeline.isCancelled else { throw error }
        reason = error.message
      }
    }
  }

  private func wait(milliseconds: Int, _ timeline: Timeline) throws(ErrorReport) {
    let end = MonotonicClock.nowNanoseconds + UInt64(milliseconds) * 1_000_000
    while case let now = MonotonicClock.nowNanoseconds, now < end {
      guard !timeline.isCancelled else { throw .superseded }
      timeline.rest(milliseconds: min(Int((end - now) / 1_000_000) + 1, Self.waitSliceMilliseconds))
    }
    guard !timeline.isCancelled else { throw .superseded }
  }
}
