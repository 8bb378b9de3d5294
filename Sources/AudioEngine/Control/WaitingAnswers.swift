import Synchronization
import WireProtocol

/// The HTTP requests that wait for the pacer or for a page: when the engine stops they are answered and not
/// waited for.
final class WaitingAnswers: Sendable {
  private struct State {
    var waiting: [Int: SingleAnswer<EngineEvent>] = [:]
    var lastNumber = 0
    /// Set once, when nothing is waited for any more.
    var requestError: EngineEvent?
  }

  private let state = Mutex(State())

  /// Adds one that waits.
  ///
  /// - Returns: what its answer is given to.
  func add(_ receiver: @escaping @Sendable (EngineEvent) -> Void) -> @Sendable (EngineEvent) -> Void {
    let answer = SingleAnswer(receiver)
    let (number, requestError) = state.withLock { state in
      state.lastNumber += 1
      state.waiting[state.lastNumber] = answer
      return (state.lastNumber, state.requestError)
    }
    if let requestError { answer.give(requestError) }
    return { [self] event in
      state.withLock { _ = $0.waiting.removeValue(forKey: number) }
      answer.give(event)
    }
  }

  /// Answers all that wait, and all that come.
  func refuseAll(_ report: ErrorReport) {
    let requestError = EngineEvent(.error(report))
    let waiting = state.withLock { state in
      state.requestError = requestError
      return state.waiting.values
    }
    for answer in waiting { answer.give(requestError) }
  }
}
