import ServiceSupport

/// The Router's uptime, summed over all its starts. What is stored has its age by it: a wall clock that jumps makes
/// nothing old, and what is stored does not age while the Router is stopped.
package struct CumulativeUptimeClock: Sendable {
  private let base: Int
  private let start: UInt64

  /// - Parameters:
  ///   - base: how long the Router had run before, in milliseconds.
  ///   - monotonic: `MonotonicClock.nowNanoseconds`.
  package init(base: Int, monotonic: UInt64 = MonotonicClock.nowNanoseconds) {
    self.base = base
    start = monotonic
  }

  /// - Parameter monotonic: `MonotonicClock.nowNanoseconds`.
  package func milliseconds(monotonic: UInt64 = MonotonicClock.nowNanoseconds) -> Int {
    base + Int((monotonic - start) / 1_000_000)
  }
}
