import Dispatch
import Synchronization

/// As many permits as cores: a worker holds one while it produces its next second, and gives it back.
///
/// A free permit goes to the timeline that will run dry first, so a track that has just been asked for
/// starts at once even while others read far ahead.
package final class CPUPermits: Sendable {
  private struct Waiter {
    let timeline: Timeline
    let turn: DispatchSemaphore
  }

  private struct State {
    var free: Int
    var waiters: [Waiter] = []
  }

  private let state: Mutex<State>

  package init(count: Int) {
    precondition(count > 0)
    state = Mutex(State(free: count))
  }

  /// Workers that wait for a permit.
  package var waiterCount: Int { state.withLock { $0.waiters.count } }

  /// Blocks the calling worker until a permit is its own.
  package func acquire(for timeline: Timeline) {
    let turn: DispatchSemaphore? = state.withLock { state in
      if state.free > 0 {
        state.free -= 1
        return nil
      }
      let turn = DispatchSemaphore(value: 0)
      state.waiters.append(Waiter(timeline: timeline, turn: turn))
      return turn
    }
    turn?.wait()
  }

  /// Gives the permit to the waiting timeline with the fewest packets ahead; the first to wait wins a tie.
  package func release() {
    state.withLock { state in
      let mostUrgent = state.waiters.indices.min {
        state.waiters[$0].timeline.packetsAhead < state.waiters[$1].timeline.packetsAhead
      }
      if let mostUrgent {
        state.waiters.remove(at: mostUrgent).turn.signal()
      } else {
        state.free += 1
      }
    }
  }
}
