import Logging
import NIOCore

typealias DataPlaneHandle = LoopHandle<DataPlane>

extension LoopHandle<DataPlane> {
  /// Makes a data plane on that loop.
  static func make(
    firstEngine: EngineNumber, stateStore: StateStore, archive: SessionArchive?, saved: SavedState,
    clientLimits: Int, eventLoop: any EventLoop, logger: Logger
  ) async throws -> DataPlaneHandle {
    try await eventLoop.submit {
      let plane = DataPlane(
        firstEngine: firstEngine, stateStore: stateStore, archive: archive, saved: saved,
        clientLimits: clientLimits,
        eventLoop: eventLoop, logger: logger)
      return DataPlaneHandle(plane, on: eventLoop)
    }.get()
  }

  /// Performs a client's command, and waits for its answer.
  func ask(_ command: ClientCommand, for grant: Grant) async throws -> Requester.Answer {
    try await eventLoop.flatSubmit {
      let plane = onLoop
      return perform(command, for: grant.client, limitFactor: grant.limitFactor) {
        () throws(RequestError) in
        try plane.budgets.charge(grant, cost: command.furtherCost(command.session(in: plane.store)))
      }
    }.get()
  }

  /// Performs a command of the Router's own, and waits for its answer.
  ///
  /// - Parameter client: for whom.
  func ask(_ command: ClientCommand, for client: ClientID) async throws -> Requester.Answer {
    try await eventLoop.flatSubmit {
      perform(command, for: client, limitFactor: 1) { nil }
    }.get()
  }

  private func perform(
    _ command: ClientCommand, for client: ClientID, limitFactor: Int,
    _ charge: () throws(RequestError) -> CommandCharge?
  ) -> EventLoopFuture<Requester.Answer> {
    let promise = eventLoop.makePromise(of: Requester.Answer.self)
    let plane = onLoop
    promise.futureResult.assumeIsolated().whenComplete { plane.statistics.count($0) }
    do {
      let charge = try charge()
      promise.futureResult.assumeIsolated().whenComplete { _ in charge?.end() }
      try plane.performOnce(
        command, for: .http(promise, requestID: command.requestID, client, limitFactor: limitFactor))
    } catch {
      promise.fail(error)
    }
    return promise.futureResult
  }
}
