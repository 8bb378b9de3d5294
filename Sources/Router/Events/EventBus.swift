import Synchronization

/// Hands events to the subscribers of their topic, within the process. Publishing never waits: each subscriber
/// has a buffer of its own, and one that is slow loses its own oldest events.
package final class EventBus: Sendable {
  private struct State {
    var nextID = 0
    /// By topic, then subscription.
    var receivers: [String: [Int: any Receiver]] = [:]
    var lost: [String: Int] = [:]
  }

  /// What is behind a subscription, whatever its topic's payload is.
  private protocol Receiver: Sendable {
    /// - Returns: whether the oldest was lost for it.
    func take(_ payload: any Sendable) -> Bool
    var subscriber: String { get }
  }

  private struct TypedReceiver<Payload: Sendable>: Receiver {
    let subscriber: String
    let continuation: AsyncStream<Payload>.Continuation

    func take(_ payload: any Sendable) -> Bool {
      guard let payload = payload as? Payload, case .dropped = continuation.yield(payload) else {
        return false
      }
      return true
    }
  }

  private let state = Mutex(State())

  package init() {}

  /// Events of some topics, the oldest first. A subscriber that iterates no longer is removed.
  ///
  /// - Parameters:
  ///   - subscriber: for the count of what was lost.
  ///   - capacity: events that may wait.
  package func subscribe<Payload>(
    _ subscriber: String, to topics: [EventTopic<Payload>], capacity: Int = RouterLimits.busCapacity
  ) -> AsyncStream<Payload> {
    let (stream, continuation) = AsyncStream.makeStream(
      of: Payload.self, bufferingPolicy: .bufferingNewest(capacity))
    let receiver = TypedReceiver(subscriber: subscriber, continuation: continuation)
    let id = state.withLock { state in
      state.nextID += 1
      state.lost[subscriber, default: 0] += 0
      for topic in topics { state.receivers[topic.name, default: [:]][state.nextID] = receiver }
      return state.nextID
    }
    continuation.onTermination = { [weak self] _ in
      self?.state.withLock { state in
        for topic in topics { state.receivers[topic.name]?[id] = nil }
      }
    }
    return stream
  }

  /// Gives an event to everyone who has subscribed to its topic.
  package func publish<Payload>(_ payload: Payload, on topic: EventTopic<Payload>) {
    let receivers = state.withLock { state in state.receivers[topic.name].map { Array($0.values) } ?? [] }
    for receiver in receivers where receiver.take(payload) {
      state.withLock { state in state.lost[receiver.subscriber, default: 0] += 1 }
    }
  }

  /// Events that subscribers have lost, by subscriber.
  package var lostEvents: [String: Int] { state.withLock(\.lost) }
}
