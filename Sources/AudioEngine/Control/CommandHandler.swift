import Dispatch
import Glibc
import Synchronization
import WireProtocol

/// Carries commands out, whichever endpoint they came through: the socket or HTTP.
///
/// What may take a while (finding a timeline, starting its production, listing a folder) happens here, off
/// the pacer's thread; what changes a session is handed to the pacer.
package final class CommandHandler: Sendable {
  /// Moves at once: each begins a production, which takes longer than to ask for it.
  private static let maximumWaitingMoves = 256

  private let pacer: Pacer
  private let timelines: TimelineStore
  private let artwork: ArtworkReader
  private let resolver: QueryResolver
  private let renders: RenderService
  private let waiting = PendingHTTPAnswers()
  private let listings: MediaLister
  /// What moving sessions wait for: no slow folder holds it up.
  private let moves = DispatchQueue(label: "antiphon.moves")
  private let waitingMoveCount = Atomic<Int>(0)

  package init(
    pacer: Pacer, timelines: TimelineStore, mediaRoot: MediaRoot?, decoders: DecoderPool,
    resolver: QueryResolver,
    renders: RenderService
  ) {
    self.pacer = pacer
    self.timelines = timelines
    artwork = ArtworkReader(mediaRoot: mediaRoot, decoders: decoders)
    self.resolver = resolver
    self.renders = renders
    listings = MediaLister { (path) throws(ErrorReport) in
      guard let mediaRoot else {
        throw ErrorReport(
          .sourceNotFound, "the engine has no media root", hint: "start it with --media-root", stage: .resolve
        )
      }
      return try mediaRoot.list(path)
    } answer: { [pacer] event, pendingRequests in
      Self.answerOutOfBand(event, pendingRequests, pacer)
    }
  }

  /// Blocks a thread that brings commands while as many wait as should: a router that sends faster than they are
  /// carried out waits in its own socket.
  func waitForRoom() {
    pacer.waitForRoom()
    EngineThread.wait { waitingMoveCount.load(ordering: .relaxed) >= Self.maximumWaitingMoves }
  }

  /// Carries a command out; the answer goes to the requester as an event.
  func perform(_ action: EngineCommand.Action, for pendingRequest: PendingRequest) {
    switch action {
    case .media(let path): listings.list(path, for: pendingRequest)
    case .session(let id, .play(let request)):
      acquire(id, request, for: pendingRequest) { .play($0) }
    case .session(let id, .prepare(let request)):
      acquire(id, request, for: pendingRequest) { .prepare($0, pendingRequest) }
    case .session(let id, .standBy(let request, let position)):
      acquire(id, request, standbyMilliseconds: position, for: pendingRequest) { .play($0) }
    case .artwork(let url, let offset): piece(of: url, from: offset, for: pendingRequest)
    // Not in order with the others: it may take seconds.
    case .resolve(let request): Task { await resolve(request, for: pendingRequest) }
    case .render(let request): render(request, for: pendingRequest)
    case .burst(let id, let milliseconds): pacer.post(.burst(id, milliseconds: milliseconds, pendingRequest))
    case .session(let id, let action): pacer.post(.command(id, action, pendingRequest))
    }
  }

  /// Whom the engine's own HTTP API asks for: one client, beside those that routers name.
  private static let httpClient = "http"

  /// Carries out the command of an HTTP request, and waits for its answer.
  package func answer(to action: EngineCommand.Action) async -> EngineEvent {
    await withCheckedContinuation { continuation in
      let answer = waiting.add { continuation.resume(returning: $0) }
      perform(action, for: PendingRequest(.closure(answer), client: Self.httpClient))
    }
  }

  /// The engine stops: no HTTP request is kept waiting for an answer.
  func refuseWaiting(_ report: ErrorReport) { waiting.refuseAll(report) }

  /// What the pacer asks for when a session moves to another timeline.
  package func acquireTimeline(
    for id: SessionID, moveNumber: UInt64, key: TrackKey, client: String?
  ) {
    waitingMoveCount.add(1, ordering: .relaxed)
    moves.async { [self] in
      defer { waitingMoveCount.subtract(1, ordering: .relaxed) }
      let result = Result { () throws(ErrorReport) in
        try timelines.acquire(key, isContinuation: true, client: client)
      }
      pacer.post(.timelineAcquired(id, moveNumber: moveNumber, result))
    }
  }

  /// Finds a request's timeline, so that its production begins at once, and hands both to the pacer.
  private func acquire(
    _ id: SessionID, _ request: PlayRequest, standbyMilliseconds: Int? = nil,
    for pendingRequest: PendingRequest,
    _ message: (NewPlay) -> SessionMessage
  ) {
    do throws(ErrorReport) {
      let source = try MediaSource(request)
      let key = TrackKey(
        source: source, startMilliseconds: standbyMilliseconds ?? request.startMilliseconds,
        volume: request.volume, bitrateKilobits: request.bitrateKilobits)
      let play = NewPlay(
        id: id, request: request, source: source,
        lease: try timelines.acquire(key, client: pendingRequest.client),
        pendingRequest: pendingRequest, standbyMilliseconds: standbyMilliseconds)
      pacer.post(message(play))
    } catch {
      pacer.post(.answer(EngineEvent(.error(error), sessionID: id), pendingRequest))
    }
  }

  private func resolve(_ request: ResolveRequest, for pendingRequest: PendingRequest) async {
    let body: EngineEvent.Body
    do throws(ErrorReport) {
      body = .resolved(try await resolver.resolve(request, for: pendingRequest.client))
    } catch {
      body = .error(error)
    }
    pacer.post(.answer(EngineEvent(body), pendingRequest))
  }

  private func render(_ request: RenderRequest, for pendingRequest: PendingRequest) {
    renders.render(request) { [self] result in
      switch result {
      case .success(let piece): answerOutOfBand(EngineEvent(.rendered(piece)), pendingRequest)
      case .failure(let report): answerOutOfBand(EngineEvent(.error(report)), pendingRequest)
      }
    }
  }

  // MARK: Artwork

  /// A whole picture, for an HTTP request.
  func picture(of url: String) async throws -> Picture {
    try await withCheckedContinuation { continuation in
      artwork.read(url) { continuation.resume(returning: $0) }
    }.get()
  }

  private func piece(of url: String, from offset: Int, for pendingRequest: PendingRequest) {
    artwork.read(url) { [self] result in
      do throws(ErrorReport) {
        answerOutOfBand(EngineEvent(.artwork(try result.get().piece(of: url, from: offset))), pendingRequest)
      } catch {
        answerOutOfBand(EngineEvent(.error(error)), pendingRequest)
      }
    }
  }

  private func answerOutOfBand(_ event: EngineEvent, _ pendingRequest: PendingRequest) {
    Self.answerOutOfBand(event, [pendingRequest], pacer)
  }

  /// Answers what concerns no session. The event is put into words here, once for all: it may be large, and the
  /// pacer has other things to do.
  private static func answerOutOfBand(
    _ event: EngineEvent, _ pendingRequests: [PendingRequest], _ pacer: Pacer
  ) {
    lazy var line = AnswerLine(event)
    for pendingRequest in pendingRequests {
      switch pendingRequest.requester {
      case .closure(let answer): answer(event)
      case .router(let connection):
        pacer.post(.outOfBand(line, requestID: pendingRequest.requestID, connection))
      }
    }
  }
}
