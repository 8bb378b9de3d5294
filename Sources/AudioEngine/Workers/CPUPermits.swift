import Dispatch
import ServiceSupport
import Synchronization

/// As many permits as cores: a worker holds one while it produces its next second, and gives it back.
///
/// A free permit goes to the timeline that will run dry first, so a track that has just been asked for starts at once
/// even while others read far ahead; among those being opened, to the client whose last turn is longest ago. One that
/// has less than a second left does not wait for a permit to be given back in its time: who has enough is asked to.
/// What does not come back from inside a library is lent another: its permit counts no more, and its thread goes
/// behind all others.
package final class CPUPermits: Sendable {
  fileprivate struct Waiter {
    let production: any Production
    let turn: DispatchSemaphore
    let sinceNanoseconds = MonotonicClock.nowNanoseconds
  }

  fileprivate struct Holder {
    let client: String?
    let isOpening: Bool
    let sinceNanoseconds: UInt64
    let threadID: Int32
    /// Its permit has been given to another.
    var isOverdue = false
    var isLast = false
  }

  /// What one that is being opened counts for: it comes before all that have more than 200 ms left, and after
  /// those whose listeners would hear a gap sooner. With 500 ms, an opening on an overloaded machine took a minute.
  fileprivate static let openingPacketsAhead = 10
  /// How long a client's openings, which take a few milliseconds, let those that run dry go first.
  fileprivate static let longestOpeningNanoseconds: UInt64 = 1_000_000_000
  /// A time slice is 20 ms: who holds a permit five times as long is inside a library that does not ask us.
  private static let longestHoldNanoseconds: UInt64 = 100_000_000
  /// What is opened and holds one as long as this is not merely kept waiting by the machine.
  private static let lastNanoseconds: UInt64 = 1_000_000_000
  /// Threads of one client inside libraries at once, before no more of its own are let in.
  fileprivate static let maximumOverdueTurns = 4
  private static let overduePollInterval = DispatchTimeInterval.milliseconds(100)

  fileprivate struct State {
    var free: Int
    var waiters: [Waiter] = []
    var holders: [ObjectIdentifier: Holder] = [:]
    var turns = RecentTurns()
    /// When an opening of a client was last put before those that run dry.
    var promotions: [String?: UInt64] = [:]
    var overdueCount = 0
    /// Those that have not come back yet, by client.
    var overdueTurns: [String?: Int] = [:]
  }

  private let state: Mutex<State>
  /// What the neediest waiter had left when it began to wait; `Int.max` while nobody waits.
  private let leastBufferedAhead = Atomic<Int>(.max)

  package init(count: Int) {
    precondition(count > 0)
    state = Mutex(State(free: count))
  }

  /// Workers that wait for a permit.
  package var waiterCount: Int { state.withLock { $0.waiters.count } }
  /// Permits lent beyond the cores, since the start.
  package var overdueCount: Int { state.withLock { $0.overdueCount } }

  /// Blocks the calling worker until a permit is its own.
  ///
  /// - Parameter threadID: of the thread that works with it.
  package func acquire(for production: any Production, threadID: Int32 = EngineThread.currentID) {
    let turn: DispatchSemaphore? = state.withLock { state in
      if state.free > 0, state.mayHold(production) {
        state.free -= 1
        state.hold(production, threadID)
        return nil
      }
      let turn = DispatchSemaphore(value: 0)
      state.waiters.append(Waiter(production: production, turn: turn))
      publishLeastBufferedAhead(state)
      return turn
    }
    guard let turn else { return }
    while turn.wait(timeout: .now() + Self.overduePollInterval) == .timedOut { replaceOverdue() }
    state.withLock { $0.hold(production, threadID) }
  }

  /// Whether anybody waits.
  package var isWanted: Bool { leastBufferedAhead.load(ordering: .relaxed) != .max }

  /// Whether a timeline that holds a permit should give it back before its time: another has less than a
  /// second left, and this one a second more than that.
  package func isNeededMore(than production: any Production) -> Bool {
    let least = leastBufferedAhead.load(ordering: .relaxed)
    return least < TimeSlice.packetCount && production.bufferedAhead > least + TimeSlice.packetCount
  }

  /// Gives the permit to the waiting timeline with the least buffered ahead; the first to wait wins a tie.
  package func release(by production: any Production) {
    let now = MonotonicClock.nowNanoseconds
    state.withLock { state in
      guard state.holders.removeValue(forKey: ObjectIdentifier(production))?.isOverdue ?? false else {
        return passOn(&state, now)
      }
      // Another has the permit already; but there may be a free one that its client was not given.
      state.endOverdue(production.client)
      for _ in 0..<state.free {
        state.free -= 1
        passOn(&state, now)
      }
    }
  }

  private func passOn(_ state: inout State, _ now: UInt64) {
    guard let index = state.mostUrgent(now) else {
      state.free += 1
      return
    }
    let waiter = state.waiters.remove(at: index)
    state.turns.note(waiter.production.client)
    waiter.turn.signal()
    publishLeastBufferedAhead(state)
  }

  private func replaceOverdue() {
    let now = MonotonicClock.nowNanoseconds
    state.withLock { state in
      for (holder, held) in state.holders {
        if held.isOpening, !held.isLast, now > held.sinceNanoseconds + Self.lastNanoseconds {
          state.holders[holder]!.isLast = true
          // Under the lock, so that it is not in another turn by then.
          ThreadPriority.putLast(threadID: held.threadID)
        }
        guard !held.isOverdue, now > held.sinceNanoseconds + Self.longestHoldNanoseconds,
          !state.waiters.isEmpty
        else { continue }
        state.holders[holder]!.isOverdue = true
        state.overdueCount += 1
        state.overdueTurns[held.client, default: 0] += 1
        passOn(&state, now)
      }
    }
  }

  private func publishLeastBufferedAhead(_ state: borrowing State) {
    leastBufferedAhead.store(state.waiters.map(\.production.bufferedAhead).min() ?? .max, ordering: .relaxed)
  }
}

extension CPUPermits.State {
  fileprivate mutating func hold(_ production: any Production, _ threadID: Int32) {
    holders[ObjectIdentifier(production)] = CPUPermits.Holder(
      client: production.client, isOpening: production.isOpening,
      sinceNanoseconds: MonotonicClock.nowNanoseconds, threadID: threadID)
  }

  /// What plays may, whatever else its client opens.
  fileprivate func mayHold(_ production: any Production) -> Bool {
    !production.isOpening
      || overdueTurns[production.client, default: 0] < CPUPermits.maximumOverdueTurns
  }

  fileprivate mutating func endOverdue(_ client: String?) {
    overdueTurns.countDown(client)
  }

  /// Who gets the next free permit.
  fileprivate mutating func mostUrgent(_ now: UInt64) -> Int? {
    if let overdue = longestWaitingOpening(now) {
      promotions[waiters[overdue].production.client] = now
      return overdue
    }
    return waiters.indices.filter { mayHold(waiters[$0].production) }
      .min { rank(waiters[$0]) < rank(waiters[$1]) }
  }

  private func rank(_ waiter: CPUPermits.Waiter) -> (Int, UInt64) {
    let isOpening = waiter.production.isOpening
    return (waiter.production.bufferedAhead, isOpening ? turns.last(waiter.production.client) : 0)
  }

  /// An opening gets a permit after at most a second, even if only to be refused, however many timelines are near
  /// underrun: one per second for each client, so that a hundred openings of one do not make others run dry.
  private mutating func longestWaitingOpening(_ now: UInt64) -> Int? {
    let patience = CPUPermits.longestOpeningNanoseconds
    promotions = promotions.filter { now < $0.value + patience }
    return waiters.indices.first { index in
      let waiter = waiters[index]
      return waiter.production.isOpening && now > waiter.sinceNanoseconds + patience
        && promotions[waiter.production.client] == nil && mayHold(waiter.production)
    }
  }
}

extension Production {
  /// Packets until someone hears nothing.
  fileprivate var bufferedAhead: Int { isOpening ? CPUPermits.openingPacketsAhead : packetsAhead }
}
