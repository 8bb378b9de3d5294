import Glibc
import WireProtocol

/// What the engine tells of itself: `/health` and `/metrics`.
package struct EngineFigures: Sendable {
  let pacer: Pacer
  let timelines: TimelineStore
  let workers: WorkerPool
  let startedNanoseconds: UInt64

  struct Health: Encodable {
    var status = "ok"
    var version = WireLimits.softwareVersion
    var uptimeSeconds: Int
    var sessions: Int
    var workersBusy: Int
    var workersMaximum: Int
    var routers: Int

    enum CodingKeys: String, CodingKey {
      case status, version, sessions, routers
      case uptimeSeconds = "uptime_s"
      case workersBusy = "workers_busy"
      case workersMaximum = "workers_max"
    }
  }

  func health() async -> Health {
    // Asks the pacer: an engine whose pacer does not answer is not healthy.
    let sessions = await pacer.sessions()
    return Health(
      uptimeSeconds: Int((MonotonicClock.nowNanoseconds - startedNanoseconds) / 1_000_000_000),
      sessions: sessions.count, workersBusy: workers.busyCount, workersMaximum: workers.maximumWorkers,
      routers: pacer.statistics.current.connections)
  }

  /// Prometheus text exposition format, version 0.0.4.
  func metrics() -> String {
    let pacing = pacer.statistics.current
    let cache = timelines.statistics
    var text = PrometheusText()
    text.gauge(
      "antiphon_engine_sessions", "Sessions by state",
      [
        (["state": "extracting"], pacing.extracting), (["state": "streaming"], pacing.streaming),
        (["state": "paused"], pacing.paused),
      ])
    text.counter("antiphon_engine_packets_total", "Packets taken from under cursors", pacing.packets)
    text.counter(
      "antiphon_engine_underruns_total", "Deadlines with nothing under the cursor", pacing.underruns)
    text.counter("antiphon_engine_rebases_total", "Restarts of the schedule after a stall", pacing.rebases)
    text.counter("antiphon_engine_dropped_packets_total", "Packets slow routers lost", pacing.droppedPackets)
    text.counter("antiphon_engine_cuts_total", "Changes made in the middle of the sound", pacing.cuts)
    text.counter(
      "antiphon_engine_cuts_without_fade_total", "Changes whose fade was not there in time",
      pacing.cutsWithoutFade)
    text.gauge("antiphon_engine_routers", "Connected routers", [([:], pacing.connections)])
    text.gauge("antiphon_engine_workers_busy", "Workers producing", [([:], workers.busyCount)])
    text.gauge(
      "antiphon_engine_jobs_queued", "Productions waiting for a worker", [([:], workers.queuedCount)])
    text.gauge("antiphon_engine_timelines", "Timelines in memory", [([:], cache.timelines)])
    text.gauge("antiphon_engine_timeline_bytes", "Memory of all timelines", [([:], cache.bytes)])
    text.counter("antiphon_engine_productions_total", "Timelines produced", cache.productions)
    text.counter("antiphon_engine_timeline_hits_total", "Plays served by a timeline there was", cache.hits)
    text.histogram(
      "antiphon_engine_lateness_seconds", "How late a round of the pacer began",
      upperBounds: PacerStatistics.latenessBounds.map { Double($0) / 1e6 }, counts: pacing.latenessCounts,
      sum: Double(pacing.latenessSumMicroseconds) / 1e6)
    text.process()
    return text.text
  }
}
