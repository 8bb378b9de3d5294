import NIOCore
import WireProtocol

/// A repository's week in a minute, made once for all who ask for the same, and a few at a time.
actor ReplayService {
  enum Form: Hashable {
    case notes, sound
  }

  private struct Key: Hashable {
    var repository: SessionID
    var form: Form
    var until: Int
  }

  /// What a replay was made of: it is rendered again when that has changed.
  private struct Source: Equatable {
    var name: String
    var lastComposed: Int
    var mapping: MusicMapping
  }

  private struct CacheEntry {
    var key: Key
    var source: Source
    var bytes: ByteBuffer
  }

  private let parts: RepositoryServices
  private let renderer: RenderClient
  private let gate = FairGate(
    FairPermits(
      limit: RouterLimits.maximumReplays, perClient: RouterLimits.replaysPerClient,
      waitingPerClient: RouterLimits.replaysWaitingPerClient),
    waitSeconds: RouterLimits.replayWaitSeconds, requestError: tooMany)
  private var running: [Key: (source: Source, task: Task<ByteBuffer, any Error>)] = [:]
  /// The one used last at the end.
  private var cached: [CacheEntry] = []

  init(parts: RepositoryServices, renderer: RenderClient) {
    self.parts = parts
    self.renderer = renderer
  }

  /// A replay as it is answered.
  ///
  /// - Parameter until: milliseconds since 1970; nil for what has happened until now.
  /// - Throws: `rate_limited` where too many of the client's wait already.
  func replay(
    of repository: EventLog.Repository, as form: Form, until: Int?, for client: ClientID
  ) async throws -> ByteBuffer {
    let step = RouterLimits.replayStepMilliseconds
    let until = until ?? (Int(Grant.nowMilliseconds) / step + 1) * step
    let key = Key(repository: repository.id, form: form, until: until)
    let source = Source(
      name: repository.name, lastComposed: repository.lastComposed,
      mapping: parts.repositories.mapping(for: repository.id).mapping)
    if let known = known(key, source) { return known }
    if let task = running[key], task.source == source { return try await task.task.value }
    return try await gate.pass(client) {
      // Somebody may have asked for the same meanwhile.
      if let known = known(key, source) { return known }
      if let task = running[key], task.source == source { return try await task.task.value }
      let task = Task { try await make(key, source) }
      running[key] = (source, task)
      defer { running[key] = nil }
      let bytes = try await task.value
      cache(CacheEntry(key: key, source: source, bytes: bytes))
      return bytes
    }
  }

  private static var tooMany: RequestError {
    var requestError = RequestError(
      .rateLimited,
      "replays are being made: \(RouterLimits.maximumReplays) in all and \(RouterLimits.replaysPerClient) of yours",
      hint: "try again after your previous request has been answered")
    requestError.retryAfterSeconds = Int(RouterLimits.replayWaitSeconds)
    return requestError
  }

  // MARK: What is known

  private func known(_ key: Key, _ source: Source) -> ByteBuffer? {
    guard let index = cached.firstIndex(where: { $0.key == key && $0.source == source }) else { return nil }
    let known = cached.remove(at: index)
    cached.append(known)
    return known.bytes
  }

  private func cache(_ replay: CacheEntry) {
    cached.removeAll { $0.key == replay.key }
    cached.append(replay)
    var byteCount = cached.reduce(0) { $0 + $1.bytes.readableBytes }
    while byteCount > RouterLimits.keptReplaysByteCount, cached.count > 1 {
      byteCount -= cached.removeFirst().bytes.readableBytes
    }
  }

  // MARK: Made

  /// Off the actor, so that others are served meanwhile.
  private nonisolated func make(_ key: Key, _ source: Source) async throws -> ByteBuffer {
    parts.statistics.countReplay()
    let from = key.until - RouterLimits.replayMilliseconds
    let events = try await parts.log.composed(in: key.repository, from..<key.until)
    let (score, places) = Composer.replay(
      events: events, from: from, until: key.until, name: source.name, mapping: source.mapping)
    if key.form == .sound { return try await renderer.render(score, as: .opus).bytes }
    let view = ReplayView(
      untilMilliseconds: key.until,
      events: zip(places, events).map { place, event in
        ReplayView.Event(atMilliseconds: NoteList.milliseconds(place), event: EventView(event.event))
      }, notes: NoteList(score))
    return ByteBuffer(bytes: JSON.encode(view))
  }
}
