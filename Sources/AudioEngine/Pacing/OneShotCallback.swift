import Synchronization

/// An answer that several may give: the first one counts.
final class OneShotCallback<Value: Sendable>: Sendable {
  private let receiver: Mutex<(@Sendable (Value) -> Void)?>

  init(_ receiver: @escaping @Sendable (Value) -> Void) {
    self.receiver = Mutex(receiver)
  }

  func give(_ value: Value) {
    let receiver = receiver.withLock { receiver in
      defer { receiver = nil }
      return receiver
    }
    receiver?(value)
  }
}
