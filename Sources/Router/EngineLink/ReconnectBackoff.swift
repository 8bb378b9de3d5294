/// When to try the engine again: at once, then 100 ms doubling to 500 ms, so that an engine that is back
/// is found well within a second and one that is away costs two system calls a try.
package struct ReconnectBackoff {
  private var attempts = 0

  package init() {}

  /// Milliseconds to wait before the next attempt.
  package mutating func next() -> Int64 {
    defer { attempts += 1 }
    guard attempts > 0 else { return 0 }
    let doublings = Int64(min(attempts - 1, 10))
    return min(RouterLimits.firstReconnectMilliseconds << doublings, RouterLimits.lastReconnectMilliseconds)
  }

  package mutating func reset() {
    attempts = 0
  }
}
