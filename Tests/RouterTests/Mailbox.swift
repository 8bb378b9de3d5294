import Synchronization

/// What has come and nobody has taken yet, in order; one taker waits at a time.
final class Mailbox<Message: Sendable>: Sendable {
  private struct State {
    var messages: [Message] = []
    var waiter: CheckedContinuation<Message?, Never>?
    var isEnded = false
  }

  private let state = Mutex(State())

  func put(_ message: Message) {
    let waiter = state.withLock { state -> CheckedContinuation<Message?, Never>? in
      guard let waiter = state.waiter else {
        state.messages.append(message)
        return nil
      }
      state.waiter = nil
      return waiter
    }
    waiter?.resume(returning: message)
  }

  /// Nothing more will come.
  func end() {
    let waiter = state.withLock { state in
      state.isEnded = true
      defer { state.waiter = nil }
      return state.waiter
    }
    waiter?.resume(returning: nil)
  }

  /// The next message; nil when there will be none.
  func next() async -> Message? {
    await withCheckedContinuation { continuation in
      let message = state.withLock { state -> Message?? in
        if !state.messages.isEmpty { return state.messages.removeFirst() }
        if state.isEnded { return .some(nil) }
        state.waiter = continuation
        return nil
      }
      if let message { continuation.resume(returning: message) }
    }
  }
}
