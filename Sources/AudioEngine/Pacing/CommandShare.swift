/// Leaves half of the pacer's time to others, whatever commands come: its thread goes before all others, and the
/// kernel stops a real-time thread that never rests for 50 ms in a second (sched(7), `sched_rt_runtime_us`).
package struct CommandShare {
  /// What commands may take at once: some twenty of them, so that only a flood is slowed.
  package static let burstNanoseconds: UInt64 = 2_000_000
  /// Nanoseconds that pass for each that commands take.
  private static let cost: UInt64 = 2

  /// When what has been done is paid for.
  private var paidNanoseconds: UInt64 = 0

  package init() {}

  package mutating func spend(from start: UInt64, to end: UInt64) {
    // What nobody had to wait for, since nothing was due, is not paid for later.
    let debt = min(max(paidNanoseconds, start), start + Self.burstNanoseconds)
    paidNanoseconds = debt + Self.cost * (end - start)
  }

  /// How long commands have to wait now; 0 where they need not.
  package func restNanoseconds(now: UInt64) -> UInt64 {
    let free = now + Self.burstNanoseconds
    return paidNanoseconds > free ? paidNanoseconds - free : 0
  }
}
