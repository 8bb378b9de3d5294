import NIOCore
import WireProtocol

/// Pieces as messages: read from the log, rendered by the engine, put into words once for all clients of an encoding.
actor StreamPieces {
  /// What comes next on a stream.
  struct Step: Sendable {
    var number: Int
    /// Whether pieces before this one are no longer kept.
    var isAfterGap: Bool
    var parameters: ByteBuffer
    var sound: Result<ByteBuffer, ErrorReport>
  }

  private struct Key: Hashable {
    var repository: SessionID
    var number: Int
    var encoding: RenderEncoding
  }

  private let log: EventLog
  private let renderer: RenderClient
  private let statistics: RepositoryStatistics
  private var tasks: [Key: Task<ByteBuffer, any Error>] = [:]
  /// The one used last at the end.
  private var kept: [(key: Key, frame: ByteBuffer)] = []
  private var runningCount = 0
  private var waiting: [CheckedContinuation<Void, Never>] = []

  init(log: EventLog, renderer: RenderClient, statistics: RepositoryStatistics) {
    self.log = log
    self.renderer = renderer
    self.statistics = statistics
  }

  /// The first piece after a number.
  ///
  /// - Returns: nil where there is none.
  func step(of repository: SessionID, after number: Int, as encoding: RenderEncoding) async throws -> Step? {
    guard let music = try await log.piece(of: repository, after: number) else { return nil }
    let isAfterGap = try await log.isGap(of: repository, after: number, before: music.number)
    let parameters = StreamParameters(
      number: music.number, repoId: repository, params: music.parameters, event: EventView(music.event))
    return Step(
      number: music.number, isAfterGap: isAfterGap,
      // A client that goes away after this message is to have the whole piece when it comes back.
      parameters: StreamFrame.make(
        id: music.number - 1, StreamMessage("musical_parameters", parameters)),
      sound: await sound(of: music, as: encoding))
  }

  private func sound(of music: GeneratedMusic, as encoding: RenderEncoding) async -> Result<
    ByteBuffer, ErrorReport
  > {
    let key = Key(repository: music.repositoryID, number: music.number, encoding: encoding)
    if let index = kept.firstIndex(where: { $0.key == key }) {
      let known = kept.remove(at: index)
      kept.append(known)
      return .success(known.frame)
    }
    let task = tasks[key] ?? Task { try await render(music, as: encoding) }
    tasks[key] = task
    defer { tasks[key] = nil }
    do {
      let frame = try await task.value
      keep(frame, key)
      return .success(frame)
    } catch let refusal as Refusal {
      return .failure(refusal.report)
    } catch {
      return .failure(ErrorReport(.internal, "the piece could not be rendered: \(error)"))
    }
  }

  private func render(_ music: GeneratedMusic, as encoding: RenderEncoding) async throws -> ByteBuffer {
    await begin()
    defer { end() }
    let begun = MonotonicClock.nowNanoseconds
    let rendering = try await renderer.render(music.score, as: encoding)
    let seconds = Double(MonotonicClock.nowNanoseconds - begun) / 1_000_000_000
    statistics.countRendering(seconds: seconds)
    return await Self.frame(music, encoding, rendering)
  }

  /// Off the actor, so that others are served meanwhile.
  private nonisolated static func frame(
    _ music: GeneratedMusic, _ encoding: RenderEncoding, _ rendering: RenderClient.Rendering
  ) async -> ByteBuffer {
    StreamFrame.make(
      id: music.number,
      json: StreamBuffer.parts(music, encoding, bytes: rendering.bytes, sampleCount: rendering.sampleCount))
  }

  private func keep(_ frame: ByteBuffer, _ key: Key) {
    guard !kept.contains(where: { $0.key == key }) else { return }
    kept.append((key, frame))
    var byteCount = kept.reduce(0) { $0 + $1.frame.readableBytes }
    while byteCount > RouterLimits.keptPiecesByteCount, kept.count > 1 {
      byteCount -= kept.removeFirst().frame.readableBytes
    }
  }

  // MARK: A few at a time

  private func begin() async {
    if runningCount < RouterLimits.maximumRenderings {
      runningCount += 1
    } else {
      await withCheckedContinuation { waiting.append($0) }
    }
  }

  private func end() {
    if waiting.isEmpty {
      runningCount -= 1
    } else {
      // The place goes on to the next.
      waiting.removeFirst().resume()
    }
  }
}
