import Synchronization

/// Lets a few in at a time, and of each client fewer; further ones wait for a while. Anyone who is let in at once
/// goes on without a pause, so that what was looked at before is still so.
final class FairGate: Sendable {
  private struct State {
    var permits: FairPermits
    var waiters: [Int: CheckedContinuation<Void, any Error>] = [:]
  }

  private let state: Mutex<State>
  private let waitSeconds: Int64
  private let requestError: RequestError

  /// - Parameter requestError: for those who have waited so long, and for those who find no room to wait.
  init(_ permits: FairPermits, waitSeconds: Int64, requestError: RequestError) {
    state = Mutex(State(permits: permits))
    self.waitSeconds = waitSeconds
    self.requestError = requestError
  }

  /// Does something when it is the client's turn.
  ///
  /// - Throws: the gate's error, or what `body` throws.
  nonisolated(nonsending) func pass<Value>(
    _ client: ClientID, _ body: nonisolated(nonsending) () async throws -> Value
  ) async throws -> Value {
    try await enter(client)
    defer { leave(client) }
    return try await body()
  }

  private nonisolated(nonsending) func enter(_ client: ClientID) async throws {
    try await withCheckedThrowingContinuation { waiter in
      let answer = state.withLock { state in
        let answer = state.permits.ask(for: client)
        if case .waits(let number) = answer { state.waiters[number] = waiter }
        return answer
      }
      switch answer {
      case .granted: waiter.resume()
      case .refused: waiter.resume(throwing: requestError)
      case .waits(let number):
        Task {
          try await Task.sleep(for: .seconds(waitSeconds))
          giveUp(number)
        }
      }
    }
  }

  private func leave(_ client: ClientID) {
    let next = state.withLock { state in
      state.permits.end(for: client).compactMap { state.waiters.removeValue(forKey: $0) }
    }
    for waiter in next { waiter.resume() }
  }

  /// Where it still waits.
  private func giveUp(_ number: Int) {
    let waiter = state.withLock { state in
      state.permits.giveUp(number)
      return state.waiters.removeValue(forKey: number)
    }
    waiter?.resume(throwing: requestError)
  }
}
