import Dispatch
import Synchronization
import WireProtocol

/// As many permits as cores: a worker holds one while it produces its next second, and gives it back.
///
/// A free permit goes to the timeline that will run dry first, so a track that has just been asked for
/// starts at once even while others read far ahead. One that has less than a second left does not wait for
/// a permit to be given back in its time: who has enough is asked to.
package final class CPUPermits: Sendable {
  private struct Waiter {
    let timeline: Timeline
    let turn: DispatchSemaphore
    let sinceNanoseconds = MonotonicClock.nowNanoseconds

    /// What is opened gets its answer, be it that there is no room, however many run dry meanwhile.
    func stock(nowNanoseconds: UInt64) -> Int {
      // It may have begun to wait after the clock was read.
      let isOverdue = nowNanoseconds > sinceNanoseconds + CPUPermits.longestOpeningNanoseconds
      return isOverdue && timeline.phase == .opening ? .min : timeline.stock
    }
  }

  /// How long an opening, which takes a few milliseconds, lets those that run dry go first.
  private static let longestOpeningNanoseconds: UInt64 = 1_000_000_000

  private struct State {
    var free: Int
    var waiters: [Waiter] = []
  }

  private let state: Mutex<State>
  /// What the neediest waiter had left when it began to wait.
  private let leastStock = Atomic<Int>(.max)

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
      publishLeastStock(state)
      return turn
    }
    turn?.wait()
  }

  /// Whether a timeline that holds a permit should give it back before its time: another has less than a
  /// second left, and this one a second more than that.
  package func isNeededMore(than timeline: Timeline) -> Bool {
    let least = leastStock.load(ordering: .relaxed)
    return least < Turn.packetCount && timeline.stock > least + Turn.packetCount
  }

  /// Gives the permit to the waiting timeline with the least stock; the first to wait wins a tie.
  package func release() {
    let now = MonotonicClock.nowNanoseconds
    state.withLock { state in
      let mostUrgent = state.waiters.indices.min {
        state.waiters[$0].stock(nowNanoseconds: now) < state.waiters[$1].stock(nowNanoseconds: now)
      }
      if let mostUrgent {
        state.waiters.remove(at: mostUrgent).turn.signal()
        publishLeastStock(state)
      } else {
        state.free += 1
      }
    }
  }

  private func publishLeastStock(_ state: borrowing State) {
    leastStock.store(state.waiters.map(\.timeline.stock).min() ?? .max, ordering: .relaxed)
  }
}

extension Timeline {
  /// What one that is being opened counts for: it comes before all that have more than 200 ms left, and after
  /// those whose listeners would hear a gap sooner.
  private static let openingStock = 10

  /// Packets until someone hears nothing.
  fileprivate var stock: Int { phase == .opening ? Self.openingStock : packetsAhead }
}
