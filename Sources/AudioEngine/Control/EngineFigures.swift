import Glibc
import WireProtocol

/// What the engine tells of itself: `/health` and `/metrics`.
package struct EngineFigures: Sendable {
  let pacer: Pacer
  let timelines: TimelineStore
  let workers: WorkerPool
  let permits: CPUPermits
  let admission: TranscodeAdmission
  let refusals: RefusalLog
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
    text.gauge("antiphon_engine_routers", "Connected routers", [([:], pacing.connections)])
    text.gauge("antiphon_engine_workers_busy", "Workers producing", [([:], workers.busyCount)])
    text.gauge(
      "antiphon_engine_jobs_queued", "Productions waiting for a worker", [([:], workers.queuedCount)])
    text.gauge(
      "antiphon_engine_workers_waiting", "Workers waiting for the CPU", [([:], permits.waiterCount)])
    writeAdmission(to: &text)
    text.counter(
      "antiphon_engine_refused_commands_total", "Commands that could not be understood", refusals.total)
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

  private func writeAdmission(to text: inout PrometheusText) {
    let figures = admission.statistics
    text.gauge("antiphon_engine_transcodes", "Transcodes that are not done", [([:], figures.transcodes)])
    text.gauge(
      "antiphon_engine_transcode_packet_seconds", "CPU time of a transcoded packet, as measured",
      [([:], figures.packetSeconds)])
    text.gauge(
      "antiphon_engine_transcode_demand_cores", "What those transcodes need in real time",
      [([:], figures.demandCores)])
    text.gauge(
      "antiphon_engine_transcode_capacity_cores", "What they may use before more are refused",
      [([:], admission.capacityCores)])
    text.counter(
      "antiphon_engine_transcodes_refused_total", "Transcodes refused as overloaded", figures.refused)
  }
}
