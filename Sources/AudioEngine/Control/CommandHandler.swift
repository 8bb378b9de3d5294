import Dispatch
import WireProtocol

/// Carries commands out, whichever door they came through: the socket or HTTP.
///
/// What may take a while (finding a timeline, starting its production, listing a folder) happens here, off
/// the pacer's thread; what changes a session is handed to the pacer.
package final class CommandHandler: Sendable {
  private let pacer: Pacer
  private let timelines: TimelineStore
  private let mediaRoot: MediaRoot?
  /// Blocking work, in order.
  private let queue = DispatchQueue(label: "antiphon.control")

  package init(pacer: Pacer, timelines: TimelineStore, mediaRoot: MediaRoot?) {
    self.pacer = pacer
    self.timelines = timelines
    self.mediaRoot = mediaRoot
  }

  /// Carries a command out; the answer goes to the asker as an event.
  func perform(_ action: EngineCommand.Action, for inquiry: Inquiry) {
    switch action {
    case .media(let path): queue.async { [self] in list(path, for: inquiry) }
    case .session(let id, .play(let request)):
      acquire(id, request, for: inquiry) { .play($0) }
    case .session(let id, .prepare(let request)):
      acquire(id, request, for: inquiry) { .prepare($0, inquiry) }
    case .session(let id, let action): pacer.post(.command(id, action, inquiry))
    }
  }

  /// The same for one HTTP request, which waits for its answer.
  package func answer(to action: EngineCommand.Action) async -> EngineEvent {
    await withCheckedContinuation { continuation in
      perform(action, for: Inquiry(.closure { continuation.resume(returning: $0) }))
    }
  }

  /// What the pacer asks for when a session moves to another timeline.
  package func acquireTimeline(for id: SessionID, moveNumber: UInt64, key: TrackKey) {
    queue.async { [pacer, timelines] in
      let result = Result { () throws(ErrorReport) in try timelines.acquire(key) }
      pacer.post(.timelineAcquired(id, moveNumber: moveNumber, result))
    }
  }

  /// Finds a request's timeline, so that its production begins at once, and hands both to the pacer.
  private func acquire(
    _ id: SessionID, _ request: PlayRequest, for inquiry: Inquiry, _ message: (NewPlay) -> PacerMessage
  ) {
    do throws(ErrorReport) {
      let source = try MediaSource(request.url)
      let key = TrackKey(
        source: source, startMilliseconds: request.startMilliseconds, volume: request.volume)
      let play = NewPlay(
        id: id, request: request, source: source, lease: try timelines.acquire(key), inquiry: inquiry)
      pacer.post(message(play))
    } catch {
      pacer.post(.answer(EngineEvent(.error(error), sessionID: id), inquiry))
    }
  }

  private func list(_ path: String, for inquiry: Inquiry) {
    let result = Result { () throws(ErrorReport) -> MediaListing in
      guard let mediaRoot else {
        throw ErrorReport(
          .sourceNotFound, "the engine has no media root", hint: "start it with --media-root", stage: .resolve
        )
      }
      return try mediaRoot.list(path)
    }
    let body: EngineEvent.Body =
      switch result {
      case .success(let listing): .media(listing)
      case .failure(let report): .error(report)
      }
    pacer.post(.answer(EngineEvent(body), inquiry))
  }
}
