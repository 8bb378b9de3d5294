/// Lets a few in at a time, and of each client fewer; further ones wait for a while.
actor FairGate {
  private var permits: FairPermits
  private let waitSeconds: Int64
  private let refusal: Refusal
  private var waiters: [Int: CheckedContinuation<Void, any Error>] = [:]

  /// - Parameter refusal: for those who have waited so long, and for whom there is no room to wait.
  init(_ permits: FairPermits, waitSeconds: Int64, refusal: Refusal) {
    self.permits = permits
    self.waitSeconds = waitSeconds
    self.refusal = refusal
  }

  /// Does something when it is the client's turn.
  ///
  /// - Throws: the gate's refusal, or what `body` throws.
  nonisolated(nonsending) func pass<Value>(
    _ client: ClientID, _ body: nonisolated(nonsending) () async throws -> Value
  ) async throws -> Value {
    try await enter(client)
    do {
      let value = try await body()
      await leave(client)
      return value
    } catch {
      await leave(client)
      throw error
    }
  }

  private func enter(_ client: ClientID) async throws {
    switch permits.ask(for: client) {
    case .granted: return
    case .refused: throw refusal
    case .waits(let number):
      let timer = Task { [waitSeconds] in
        try await Task.sleep(for: .seconds(waitSeconds))
        giveUp(number)
      }
      defer { timer.cancel() }
      try await withCheckedThrowingContinuation { waiters[number] = $0 }
    }
  }

  private func leave(_ client: ClientID) {
    for number in permits.end(for: client) { waiters.removeValue(forKey: number)?.resume() }
  }

  private func giveUp(_ number: Int) {
    permits.giveUp(number)
    waiters.removeValue(forKey: number)?.resume(throwing: refusal)
  }
}
