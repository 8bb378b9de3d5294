import ServiceSupport
import WireProtocol

/// A command that waits for its answer: who sent it, and how the answer reaches them.
package struct PendingRequest: Sendable {
  package enum Requester: Sendable {
    /// The router on a connection.
    case router(RouterConnection.ID)
    /// One HTTP request.
    case closure(@Sendable (EngineEvent) -> Void)
  }

  let requester: Requester
  package let requestID: String?
  /// On whose behalf: nil for a client without a name.
  let client: String?
  /// See `EngineCommand.epoch`.
  let epoch: UInt64?
  let askedNanoseconds: UInt64

  package init(
    _ requester: Requester, requestID: String? = nil, client: String? = nil, epoch: UInt64? = nil,
    askedNanoseconds: UInt64 = MonotonicClock.nowNanoseconds
  ) {
    self.requester = requester
    self.requestID = requestID
    self.client = client
    self.epoch = epoch
    self.askedNanoseconds = askedNanoseconds
  }
}
