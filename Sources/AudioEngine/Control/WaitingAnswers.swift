import Synchronization
import WireProtocol

/// The HTTP requests that wait for the pacer or for a page: when the engine stops they are answered and not
/// waited for.
final class WaitingAnswers: Sendable {
  private struct State {
    var waiting: [Int: SingleAnswer<EngineEvent>] = [:]
    var lastNumber = 0
    /// Set once, when nothing is waited for any more.
    var refusal: EngineEvent?
  }

  private let state = Mutex(State())

  /// Adds one that waits.
  ///
  /// - Returns: what its answer is given to.
  func add(_ receiver: @escaping @Sendable (EngineEvent) -> Void) -> @Sendable (EngineEvent) -> Void {
    let answer = SingleAnswer(receiver)
    let (number, refusal) = state.withLock { state in
      state.lastNumber += 1
      state.waiting[state.lastNumber] = answer
      return (state.lastNumber, state.refusal)
    }
    if let refusal { answer.give(refusal) }
    return { [self] event in
      state.withLock { _ = $0.waiting.removeValue(forKey: number) }
      answer.give(event)
    }
  }

  /// Answers all that wait, and all that come.
  func refuseAll(_ report: ErrorReport) {
    let refusal = EngineEvent(.error(report))
    let waiting = state.withLock { state in
      state.refusal = refusal
      return state.waiting.values
    }
    for answer in waiting { answer.give(refusal) }
  }
}
