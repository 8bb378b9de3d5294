import HTTPLimits
import ServiceSupport
import WireProtocol

/// What the engine reports about itself: `/health` and `/metrics`.
package struct EngineMetrics: Sendable {
  let pacer: Pacer
  let timelines: TimelineStore
  let disk: DiskCache?
  let workers: WorkerPool
  let extractor: Extractor
  let permits: CPUPermits
  let admission: TranscodeAdmission
  let decoders: DecoderPool
  let requestErrors: RequestErrorLog
  let readiness: EngineReadiness
  let connections: ConnectionCounter
  let startedNanoseconds: UInt64

  struct Health: Encodable {
    /// While the engine can answer at all.
    var status = "ok"
    var ready: Bool
    var reasons: [String]
    var version = WireLimits.softwareVersion
    var uptimeSeconds: Int
    var sessions: Int
    var workersBusy: Int
    var workersMaximum: Int
    var routers: Int
    var extractor: Extraction
    var decoders: Decoders

    /// The processes in which media is parsed.
    struct Decoders: Encodable {
      var processes: Int
      var deaths: Int
      /// Protections of their sandbox that the kernel did not apply, and why.
      var unguarded: [String]
    }

    /// yt-dlp, without which files and direct links still play.
    struct Extraction: Encodable {
      var available: Bool
      var version: String?
      /// Why pages cannot be played.
      var message: String?
    }

    enum CodingKeys: String, CodingKey {
      case status, ready, reasons, version, sessions, routers, extractor, decoders
      case uptimeSeconds = "uptime_s"
      case workersBusy = "workers_busy"
      case workersMaximum = "workers_max"
    }
  }

  private var uptimeSeconds: Int {
    Int((MonotonicClock.nowNanoseconds - startedNanoseconds) / 1_000_000_000)
  }

  /// Waits for nobody: an engine that hangs says so.
  func health() async -> Health {
    let pacing = pacer.statistics.current
    let readiness = await readiness.report()
    let extraction = await extractor.statistics()
    let decoding = decoders.statistics
    return Health(
      ready: readiness.ready, reasons: readiness.reasons, uptimeSeconds: uptimeSeconds,
      sessions: pacing.sessions.live,
      workersBusy: workers.busyCount,
      workersMaximum: workers.maximumWorkers, routers: pacing.connections,
      extractor: Health.Extraction(
        available: extraction.problem == nil, version: extraction.version, message: extraction.problem),
      decoders: Health.Decoders(
        processes: decoding.processes, deaths: decoding.deaths, unguarded: decoding.unenforcedProtections))
  }

  /// Prometheus text exposition format, version 0.0.4.
  func text() async -> String {
    let pacing = pacer.statistics.current
    let cache = timelines.statistics
    var text = PrometheusText()
    text.gauge(
      "antiphon_engine_build_info", "1, with the version",
      [(["version": WireLimits.softwareVersion, "protocol": "\(WireLimits.protocolVersion)"], 1)])
    text.gauge("antiphon_engine_uptime_seconds", "Since the engine started", [([:], uptimeSeconds)])
    text.gauge(
      "antiphon_engine_sessions", "Sessions by state",
      [
        (["state": "extracting"], pacing.sessions.extracting),
        (["state": "streaming"], pacing.sessions.streaming),
        (["state": "paused"], pacing.sessions.paused),
      ])
    text.counter("antiphon_engine_packets_total", "Opus packets sent by the pacer", pacing.sessions.packets)
    text.counter(
      "antiphon_engine_underruns_total", "Underruns: packets not produced by their deadline",
      pacing.sessions.underruns)
    text.counter(
      "antiphon_engine_rebases_total", "Restarts of the schedule after a stall", pacing.sessions.rebases)
    text.counter(
      "antiphon_engine_dropped_packets_total", "Packets dropped for slow routers", pacing.droppedPackets)
    text.counter(
      "antiphon_engine_cuts_total", "Cuts in the middle of the audio", pacing.sessions.transitions)
    text.counter(
      "antiphon_engine_cuts_without_fade_total", "Cuts whose fade was not rendered in time",
      pacing.sessions.transitionsWithoutFade)
    text.counter(
      "antiphon_engine_lost_answers_total", "Answers dropped for slow routers without an error report",
      pacing.lostAnswers)
    text.gauge("antiphon_engine_routers", "Connected routers", [([:], pacing.connections)])
    text.gauge(
      "antiphon_engine_router_queue_bytes", "Bytes that slow routers have not taken yet",
      [([:], pacing.routerQueueBytes)])
    text.gauge("antiphon_engine_workers_busy", "Workers producing", [([:], workers.busyCount)])
    text.gauge(
      "antiphon_engine_jobs_queued", "Productions waiting for a worker", [([:], workers.queuedCount)])
    text.gauge(
      "antiphon_engine_workers_waiting", "Workers waiting for the CPU", [([:], permits.waiterCount)])
    let decoding = decoders.statistics
    text.gauge("antiphon_engine_decoder_processes", "Processes that decode", [([:], decoding.processes)])
    text.counter(
      "antiphon_engine_decoder_deaths_total", "Decoder processes that died or were ended", decoding.deaths)
    text.gauge(
      "antiphon_engine_decoder_refused_sources", "Sources rejected because decoder processes died of them",
      [([:], decoding.refusedSources)])
    writeShares(to: &text)
    writeAdmission(to: &text)
    text.counter(
      "antiphon_engine_refused_commands_total", "Commands that could not be understood", requestErrors.total)
    text.gauge("antiphon_engine_timelines", "Timelines in memory", [([:], cache.timelines)])
    text.gauge("antiphon_engine_timeline_bytes", "Memory of all timelines", [([:], cache.bytes)])
    text.counter("antiphon_engine_productions_total", "Timelines produced", cache.productions)
    text.counter("antiphon_engine_timeline_hits_total", "Plays served from an existing timeline", cache.hits)
    addDiskCache(to: &text)
    text.histogram(
      "antiphon_engine_lateness_seconds", "How late a round of the pacer began", pacing.lateness)
    Self.add(await extractor.statistics(), to: &text)
    text.process()
    return text.text
  }

  private static func add(_ extraction: Extractor.Statistics, to text: inout PrometheusText) {
    text.counter("antiphon_engine_extraction_jobs_total", "yt-dlp extraction jobs", extraction.pool.jobs)
    text.counter(
      "antiphon_engine_extraction_failures_total", "Failed yt-dlp extraction jobs", extraction.pool.failures
    )
    text.counter(
      "antiphon_engine_extraction_cache_hits_total", "Extraction results served from the cache",
      extraction.cacheHits)
    text.gauge("antiphon_engine_extractions_cached", "Cached extraction results", [([:], extraction.cached)])
    text.counter(
      "antiphon_engine_extraction_worker_starts_total", "yt-dlp processes started", extraction.pool.starts)
    text.counter(
      "antiphon_engine_extraction_worker_restarts_total",
      "yt-dlp processes restarted after one died or was killed",
      extraction.pool.restarts)
    text.gauge("antiphon_engine_extraction_workers", "yt-dlp processes", [([:], extraction.pool.running)])
    text.gauge(
      "antiphon_engine_extractions_queued", "Queued yt-dlp extraction jobs", [([:], extraction.pool.queued)])
  }

  /// What keeps clients apart.
  private func writeShares(to text: inout PrometheusText) {
    text.gauge(
      "antiphon_engine_productions_waiting",
      "Productions that wait without a worker's slot: for the network, or ahead",
      [([:], workers.waitingCount)])
    text.counter(
      "antiphon_engine_workers_exhausted_total", "Tracks rejected because no worker was free",
      workers.refusedCount)
    text.counter(
      "antiphon_engine_permits_overdue_total", "CPU permits that were not returned in time",
      permits.overdueCount)
    text.gauge("antiphon_engine_http_connections", "Connections to the HTTP API", [([:], connections.count)])
    text.counter(
      "antiphon_engine_http_connections_refused_total", "Connections over the limits",
      connections.refusedCount)
  }

  private func writeAdmission(to text: inout PrometheusText) {
    let statistics = admission.statistics
    text.gauge("antiphon_engine_transcodes", "Unfinished transcodes", [([:], statistics.transcodes)])
    text.gauge(
      "antiphon_engine_transcode_packet_seconds", "CPU time of a transcoded packet, as measured",
      [([:], statistics.packetSeconds)])
    text.gauge(
      "antiphon_engine_transcode_demand_cores", "CPU cores that the unfinished transcodes need in real time",
      [([:], statistics.demandCores)])
    text.gauge(
      "antiphon_engine_transcode_capacity_cores", "CPU cores that transcodes may use before more are refused",
      [([:], admission.capacityCores)])
    text.counter(
      "antiphon_engine_transcodes_refused_total", "Transcodes refused as overloaded", statistics.refused)
  }

  /// All zero where there is none.
  private func addDiskCache(to text: inout PrometheusText) {
    let statistics = disk?.statistics ?? DiskCache.Statistics()
    text.gauge("antiphon_engine_disk_cache_files", "Tracks kept on disk", [([:], statistics.files)])
    text.gauge("antiphon_engine_disk_cache_bytes", "Bytes of tracks kept on disk", [([:], statistics.bytes)])
    text.counter("antiphon_engine_disk_cache_hits_total", "Timelines filled from disk", statistics.hits)
    text.counter(
      "antiphon_engine_disk_cache_misses_total", "Timelines that were not there", statistics.misses)
    text.counter("antiphon_engine_disk_cache_writes_total", "Tracks written", statistics.writes)
    text.counter(
      "antiphon_engine_disk_cache_failures_total", "Tracks that could not be written", statistics.failures)
    text.counter(
      "antiphon_engine_disk_cache_evictions_total", "Tracks deleted for room", statistics.evictions)
    text.counter(
      "antiphon_engine_disk_cache_rejections_total", "Tracks deleted as broken or out of date",
      statistics.rejections)
  }
}
