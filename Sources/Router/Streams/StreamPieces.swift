import NIOCore
import ServiceSupport
import WireProtocol

/// Pieces as messages: read from the log, rendered by the engine, put into words once for all clients of an encoding.
actor StreamPieces {
  /// What comes next on a stream.
  struct Step: Sendable {
    var number: Int
    /// Whether pieces before this one are no longer kept.
    var isAfterGap: Bool
    var parameters: ByteBuffer
    var sound: Result<StreamPiece, ErrorReport>
    /// Whether the engine has rendered it for this step.
    var wasRendered: Bool
  }

  private struct Key: Hashable {
    var repository: SessionID
    var number: Int
    var encoding: RenderEncoding
  }

  private let log: EventLog
  private let renderer: RenderClient
  private let statistics: RepositoryStatistics
  private var tasks: [Key: Task<StreamPiece, any Error>] = [:]
  private var pieceCount = 0
  /// The one used last at the end.
  private var kept: [(key: Key, piece: StreamPiece)] = []
  private var runningCount = 0
  /// New pieces, which many wait for, and then those that somebody catches up with.
  private var waiting: [CheckedContinuation<Void, Never>] = []
  private var waitingLate: [CheckedContinuation<Void, Never>] = []

  init(log: EventLog, renderer: RenderClient, statistics: RepositoryStatistics) {
    self.log = log
    self.renderer = renderer
    self.statistics = statistics
  }

  /// The first piece after a number.
  ///
  /// - Parameters:
  ///   - isNew: whether it goes before what was missed.
  ///   - made: what has just been made, which is asked of the log where it is not the very next.
  /// - Returns: nil where there is none.
  func step(
    of repository: SessionID, after number: Int, as encoding: RenderEncoding, isNew: Bool,
    made: GeneratedMusic?
  ) async throws -> Step? {
    let isNext = made?.number == number + 1
    guard let music = isNext ? made : try await log.piece(of: repository, after: number) else { return nil }
    let isAfterGap =
      isNext ? false : try await log.isGap(of: repository, after: number, before: music.number)
    let parameters = StreamParameters(
      number: music.number, repoId: repository, params: music.parameters, event: EventView(music.event))
    let (sound, wasRendered) = await sound(of: music, as: encoding, isNew: isNew)
    return Step(
      number: music.number, isAfterGap: isAfterGap,
      // A client that goes away after this message is to have the whole piece when it comes back.
      parameters: StreamFrame.make(
        id: music.number - 1, StreamMessage("musical_parameters", parameters)),
      sound: sound, wasRendered: wasRendered)
  }

  private func sound(
    of music: GeneratedMusic, as encoding: RenderEncoding, isNew: Bool
  ) async -> (Result<StreamPiece, ErrorReport>, wasRendered: Bool) {
    let key = Key(repository: music.repositoryID, number: music.number, encoding: encoding)
    if let index = kept.firstIndex(where: { $0.key == key }) {
      let known = kept.remove(at: index)
      kept.append(known)
      return (.success(known.piece), false)
    }
    let running = tasks[key]
    let task = running ?? Task { try await render(music, as: encoding, isNew: isNew) }
    tasks[key] = task
    defer { tasks[key] = nil }
    do {
      let piece = try await task.value
      keep(piece, key)
      return (.success(piece), running == nil)
    } catch let requestError as RequestError {
      return (.failure(requestError.report), running == nil)
    } catch {
      return (.failure(ErrorReport(.internal, "the piece could not be rendered: \(error)")), running == nil)
    }
  }

  private func render(_ music: GeneratedMusic, as encoding: RenderEncoding, isNew: Bool) async throws
    -> StreamPiece
  {
    await begin(isNew: isNew)
    defer { end() }
    let begun = MonotonicClock.nowNanoseconds
    let frame = try await frame(of: music, as: encoding)
    statistics.countRendering(seconds: Double(MonotonicClock.nowNanoseconds - begun) / 1_000_000_000)
    pieceCount += 1
    return StreamPiece(id: pieceCount, frame: frame)
  }

  /// Off the actor, so that others are served meanwhile. Samples in words are many megabytes: they are written to
  /// their place at once.
  private nonisolated func frame(of music: GeneratedMusic, as encoding: RenderEncoding) async throws
    -> ByteBuffer
  {
    let (before, after) = StreamBuffer.around(music)
    guard encoding == .json else {
      let rendering = try await renderer.render(music.score, as: encoding)
      let object = StreamBuffer.object(
        encoding, bytes: rendering.bytes, sampleCount: rendering.sampleCount)
      return StreamFrame.make(id: music.number, json: [before, object, after].map { ByteBuffer(bytes: $0) })
    }
    var frame = try await renderer.render(music.score, as: encoding) { byteCount in
      var beginning = StreamFrame.begin(
        id: music.number, jsonByteCount: before.count + byteCount + after.count)
      beginning.writeBytes(before)
      return beginning
    }.bytes
    frame.writeBytes(after)
    StreamFrame.end(&frame)
    return frame
  }

  private func keep(_ piece: StreamPiece, _ key: Key) {
    guard !kept.contains(where: { $0.key == key }) else { return }
    kept.append((key, piece))
    var byteCount = kept.reduce(0) { $0 + $1.piece.byteCount }
    while byteCount > RouterLimits.keptPiecesByteCount, kept.count > 1 {
      byteCount -= kept.removeFirst().piece.byteCount
    }
  }

  // MARK: A few at a time

  private func begin(isNew: Bool) async {
    guard runningCount >= RouterLimits.maximumRenderings else {
      runningCount += 1
      return
    }
    await withCheckedContinuation { isNew ? waiting.append($0) : waitingLate.append($0) }
  }

  private func end() {
    if !waiting.isEmpty {
      // The place goes to the next.
      waiting.removeFirst().resume()
    } else if !waitingLate.isEmpty {
      waitingLate.removeFirst().resume()
    } else {
      runningCount -= 1
    }
  }
}
