import Synchronization
import WireProtocol

/// What is asked of an endless score while it sounds: given by the pacer's thread, taken by the score's producer
/// between two frames.
package final class LiveScoreControl: Sendable {
  /// Scores that wait to join. The producer takes them every 100 ms.
  private static let maximumWaiting = 16

  /// A score that joins, and who wants to know where.
  struct Joining: Sendable {
    let score: Score
    let joined: @Sendable (Result<ScorePlacement, ErrorReport>) -> Void
  }

  /// What has been asked for since the last time.
  struct Changes: Sendable {
    var joining: [Joining] = []
    var muted: Set<Score.Role>?
    var gain: Double?
  }

  private struct State {
    var changes = Changes()
    var isOver = false
  }

  private let state = Mutex(State())

  package init() {}

  /// - Parameter joined: called on the producer's thread, once.
  /// - Throws: `overloaded` where many wait already, `superseded` where it is over.
  func join(
    _ score: Score, joined: @escaping @Sendable (Result<ScorePlacement, ErrorReport>) -> Void
  ) throws(ErrorReport) {
    try state.withLock { (state) throws(ErrorReport) in
      guard !state.isOver else { throw .superseded }
      guard state.changes.joining.count < Self.maximumWaiting else {
        throw ErrorReport(
          .overloaded, "perform: \(Self.maximumWaiting) scores wait to be heard already",
          hint: "send them one after the other", stage: .command)
      }
      state.changes.joining.append(Joining(score: score, joined: joined))
    }
  }

  func mute(_ roles: Set<Score.Role>) { state.withLock { $0.changes.muted = roles } }

  /// - Parameter gain: linear.
  func setGain(_ gain: Double) { state.withLock { $0.changes.gain = gain } }

  /// What was asked for, once.
  func take() -> Changes {
    state.withLock { state in
      defer { state.changes = Changes() }
      return state.changes
    }
  }

  /// Nothing is rendered any more: anyone who waits is told.
  func end() {
    let waiting = state.withLock { state in
      state.isOver = true
      defer { state.changes = Changes() }
      return state.changes.joining
    }
    for entry in waiting { entry.joined(.failure(.superseded)) }
  }
}
