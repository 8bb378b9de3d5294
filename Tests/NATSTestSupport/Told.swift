import Synchronization

/// What callbacks have told.
package final class Told<Value: Sendable>: Sendable {
  private let state = Mutex<[Value]>([])

  package init() {}

  package var values: [Value] { state.withLock { $0 } }
  package func add(_ value: Value) { state.withLock { $0.append(value) } }

  /// Waits for so many values; gives what there is after 10 s.
  package func values(_ count: Int) async -> [Value] {
    await eventually { self.values.count >= count }
    return values
  }
}

/// Looks again and again until something is so.
///
/// - Parameter seconds: as long as that where nothing else runs, and a look every 5 ms.
/// - Returns: whether it was.
@discardableResult
package func eventually(within seconds: Double = 10, _ isSo: () async throws -> Bool) async rethrows -> Bool {
  // Not a time: where hundreds of tests share two threads, a look may take a second.
  for _ in 0..<Int(seconds * 200) {
    if try await isSo() { return true }
    try? await Task.sleep(for: .milliseconds(5))
  }
  return false
}
