import Dispatch
import Logging
import ServiceSupport
import Synchronization
import WireProtocol

/// Page addresses to streams: what has been found is kept until it expires, and those who ask for the same
/// page at the same time share one job.
package final class Extractor: Sendable {
  /// Extractions kept; each is a few kilobytes.
  private static let maximumCachedCount = 1_000

  private struct State {
    var cache = ExpiringCache<Extraction>(maximumCount: Extractor.maximumCachedCount)
    var running: [Question: SharedExtraction] = [:]
    var hits = 0

    mutating func keep(_ extraction: Extraction, for url: String) {
      cache.insert(extraction, for: url, expiresNanoseconds: extraction.expiresNanoseconds)
    }
  }

  /// Jobs with equal questions are one job.
  private struct Question: Hashable {
    var url: String
    var formatID: String?
    /// Asked because what was known no longer holds.
    var isRenewal: Bool
    /// Nobody waits in another's line for what he would have sooner in his own.
    var client: String?
  }

  private let pool: ExtractionPool
  private let state = Mutex(State())

  init(pool: ExtractionPool) { self.pool = pool }

  /// What is known of a page, without asking anyone.
  func known(_ url: String) -> Extraction? {
    state.withLock { state in
      guard let extraction = state.cache.value(for: url, now: MonotonicClock.nowNanoseconds) else {
        return nil
      }
      state.hits += 1
      return extraction
    }
  }

  /// Finds the stream behind a page. Blocks the calling worker, which must hold no CPU permit.
  ///
  /// - Parameters:
  ///   - client: for whom.
  ///   - expired: what was found before and no longer works: the same format is found again.
  /// - Throws: `source_not_audio`, `source_forbidden`, `extraction_failed`, `extractor_unavailable`,
  ///   `workers_exhausted`, `source_timeout`; `superseded` once `isCancelled`.
  func extract(
    _ url: String, for client: String?, replacing expired: Extraction? = nil, isCancelled: () -> Bool
  ) throws(ErrorReport) -> Extraction {
    let question = Question(
      url: url, formatID: expired?.formatID, isRenewal: expired != nil, client: client)
    let (shared, isNew) = state.withLock { state in
      if let running = state.running[question], running.join() { return (running, false) }
      let shared = SharedExtraction()
      state.running[question] = shared
      return (shared, true)
    }
    if isNew { Task { await run(question, shared) } }
    return try shared.wait(isCancelled: isCancelled)
  }

  private func run(_ question: Question, _ shared: SharedExtraction) async {
    let result: Result<Extraction, ErrorReport>
    do throws(ErrorReport) {
      let found = try await pool.run(
        .extract(url: question.url, formatID: question.formatID), for: question.client
      ) {
        shared.isWanted
      }
      guard let track = found.track else {
        throw ErrorReport(.internal, "a list where a track was asked for")
      }
      result = .success(Extraction(track))
    } catch {
      result = .failure(error)
    }
    state.withLock { state in
      if state.running[question] === shared { state.running[question] = nil }
      if case .success(let extraction) = result { state.keep(extraction, for: question.url) }
    }
    shared.finish(result)
  }

  // MARK: Looking around

  /// What a page holds: one track, which is then known, or a list.
  func list(_ url: String, limit: Int, for client: String?) async throws(ErrorReport) -> WorkerAnswer.Found {
    let found = try await pool.run(.list(url: url, limit: limit), for: client) { true }
    if let track = found.track {
      let extraction = Extraction(track)
      state.withLock { $0.keep(extraction, for: url) }
    }
    return found
  }

  func search(
    _ query: String, limit: Int, for client: String?
  ) async throws(ErrorReport) -> WorkerAnswer.Found {
    try await pool.run(.search(query: query, limit: limit), for: client) { true }
  }

  // MARK: For operators

  /// Finds out which yt-dlp is installed, for `/health`.
  func lookForVersion() async { await pool.lookForVersion() }

  struct Statistics: Sendable {
    var pool: ExtractionPool.Statistics
    var cacheHits: Int
    var cached: Int
    var version: String?
    /// Why pages cannot be played now.
    var problem: String?
  }

  func statistics() async -> Statistics {
    let (hits, cached) = state.withLock { ($0.hits, $0.cache.count) }
    return Statistics(
      pool: await pool.statistics, cacheHits: hits, cached: cached, version: await pool.version,
      problem: await pool.problem)
  }
}

/// One extraction that several workers may wait for.
private final class SharedExtraction: Sendable {
  private struct State {
    var result: Result<Extraction, ErrorReport>?
    var waiters = 1
  }

  private let state = Mutex(State())
  private let done = DispatchSemaphore(value: 0)
  /// How often a blocked worker looks whether it is still wanted.
  private static let waitSlice = DispatchTimeInterval.milliseconds(100)

  /// Another one waits; false where nobody did, so that the job may have been given up.
  func join() -> Bool {
    state.withLock { state in
      guard state.waiters > 0 else { return false }
      state.waiters += 1
      return true
    }
  }

  var isWanted: Bool { state.withLock { $0.waiters > 0 } }

  func finish(_ result: Result<Extraction, ErrorReport>) {
    state.withLock { $0.result = result }
    done.signal()
  }

  /// Blocks until there is a result. The pool ends every job in time.
  func wait(isCancelled: () -> Bool) throws(ErrorReport) -> Extraction {
    defer { state.withLock { $0.waiters -= 1 } }
    while true {
      if let result = state.withLock({ $0.result }) {
        // The next one who waits.
        done.signal()
        return try result.get()
      }
      guard !isCancelled() else { throw .superseded }
      _ = done.wait(timeout: .now() + Self.waitSlice)
    }
  }
}
