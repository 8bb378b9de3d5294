import Synchronization
import WireProtocol

/// Renders scores for those who ask, each once: what is asked for again comes from memory, and who asks for what is
/// being rendered waits for it with the first.
///
/// The work is done on threads of its own, as many as there are cores, which let every other thread go first.
package final class RenderService: Sendable {
  package typealias Completion = @Sendable (Result<Rendering, ErrorReport>) -> Void

  /// Renderings that may wait for a thread.
  package static let maximumQueuedRenderings = 64
  /// Requesters of one rendering that may wait for it.
  private static let maximumWaiting = 256
  /// Behind what plays and what is decoded, but not so far that somebody who waits for a piece waits endlessly on
  /// a busy machine.
  private static let niceness: Int32 = 5

  private struct State {
    var cache: RenderingCache
    /// Who waits for what, by the rendering's name.
    var waiting: [String: [Completion]] = [:]
  }

  private let workers: WorkerPool
  private let state: Mutex<State>

  /// - Parameters:
  ///   - threadCount: renderings at once.
  ///   - cacheByteLimit: of all renderings that are kept.
  package init(threadCount: Int, cacheByteLimit: Int = RenderingCache.usualByteLimit) {
    workers = WorkerPool(maximumWorkers: threadCount, maximumQueuedJobs: Self.maximumQueuedRenderings)
    state = Mutex(State(cache: RenderingCache(byteLimit: cacheByteLimit)))
  }

  /// Gives a piece of a rendering; `completion` runs on any thread, perhaps at once.
  ///
  /// Fails with `invalid_command` for a score without a length or an offset behind the end, `not_found` for a piece
  /// of a rendering that is not kept any more, `workers_exhausted` where too many wait.
  package func render(
    _ request: RenderRequest, completion: @escaping @Sendable (Result<RenderedPiece, ErrorReport>) -> Void
  ) {
    switch request {
    case .score(let score, let encoding):
      rendering(of: score, as: encoding) { result in
        completion(
          result.flatMap { rendering in Result { () throws(ErrorReport) in try rendering.piece(from: 0) } })
      }
    case .piece(let name, let offset):
      let kept = state.withLock { $0.cache.find(name) }
      completion(
        Result { () throws(ErrorReport) in
          guard let kept else { throw Self.forgotten(name) }
          return try kept.piece(from: offset)
        })
    }
  }

  /// A whole rendering.
  ///
  /// - Throws: as `render`.
  package func whole(_ score: Score, as encoding: RenderEncoding) async throws(ErrorReport) -> Rendering {
    let result = await withCheckedContinuation { continuation in
      rendering(of: score, as: encoding) { continuation.resume(returning: $0) }
    }
    return try result.get()
  }

  private func rendering(of score: Score, as encoding: RenderEncoding, _ completion: @escaping Completion) {
    enum Place {
      case kept(Rendering)
      case first, behind, refused
    }
    let name: String
    do throws(ErrorReport) {
      name = try Rendering.name(of: score, as: encoding)
    } catch {
      return completion(.failure(error))
    }
    let place: Place = state.withLock { state in
      if let kept = state.cache.find(name) { return .kept(kept) }
      guard let waiting = state.waiting[name] else {
        state.waiting[name] = [completion]
        return .first
      }
      guard waiting.count < Self.maximumWaiting else { return .refused }
      state.waiting[name]!.append(completion)
      return .behind
    }
    switch place {
    case .kept(let rendering): completion(.success(rendering))
    case .behind: break
    case .refused: completion(.failure(Self.busy))
    case .first: begin(name, score, encoding)
    }
  }

  private func begin(_ name: String, _ score: Score, _ encoding: RenderEncoding) {
    do throws(ErrorReport) {
      try workers.submit { [self] _ in
        EngineThread.setNiceness(Self.niceness)
        finish(name, Result { () throws(ErrorReport) in try Rendering(of: score, as: encoding, name: name) })
      }
    } catch {
      finish(name, .failure(error.code == .workersExhausted ? Self.busy : error))
    }
  }

  private func finish(_ name: String, _ result: Result<Rendering, ErrorReport>) {
    let waiting = state.withLock { state in
      if case .success(let rendering) = result { state.cache.keep(rendering) }
      return state.waiting.removeValue(forKey: name) ?? []
    }
    for completion in waiting { completion(result) }
  }

  private static let busy = ErrorReport(
    .workersExhausted, "\(maximumQueuedRenderings) scores wait to be rendered already",
    hint: "try again in a few seconds", stage: .queue)

  private static func forgotten(_ name: String) -> ErrorReport {
    ErrorReport(
      .notFound, "there is no rendering \(name.quoted), or it is not kept any more",
      hint: "ask for its score again", stage: .command)
  }
}
