import Synchronization
import WireProtocol

/// The HTTP requests that wait for the pacer or for a page. When the engine stops, it answers them instead of
/// waiting for them.
final class PendingHTTPAnswers: Sendable {
  private struct State {
    var waiting: [Int: OneShotCallback<EngineEvent>] = [:]
    var lastNumber = 0
    /// Set once, when the engine stops: the answer to every request from then on.
    var shutdownAnswer: EngineEvent?
  }

  private let state = Mutex(State())

  /// Adds a pending request.
  ///
  /// - Returns: takes the request's answer.
  func add(_ receiver: @escaping @Sendable (EngineEvent) -> Void) -> @Sendable (EngineEvent) -> Void {
    let answer = OneShotCallback(receiver)
    let (number, shutdownAnswer) = state.withLock { state in
      state.lastNumber += 1
      state.waiting[state.lastNumber] = answer
      return (state.lastNumber, state.shutdownAnswer)
    }
    if let shutdownAnswer { answer.give(shutdownAnswer) }
    return { [self] event in
      state.withLock { _ = $0.waiting.removeValue(forKey: number) }
      answer.give(event)
    }
  }

  /// Answers all pending requests, and all later ones.
  func refuseAll(_ report: ErrorReport) {
    let shutdownAnswer = EngineEvent(.error(report))
    let waiting = state.withLock { state in
      state.shutdownAnswer = shutdownAnswer
      return state.waiting.values
    }
    for answer in waiting { answer.give(shutdownAnswer) }
  }
}
