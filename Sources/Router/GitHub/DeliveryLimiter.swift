import ServiceSupport
import Synchronization
import WireProtocol

/// Slows a repository whose automation has run wild, and a client who sends too many test events.
package final class DeliveryLimiter: Sendable {
  private let burst: Int
  private let perSecond: Double
  private let repositories: Mutex<KeyedBuckets<SessionID>>
  private let clients = Mutex(
    KeyedBuckets<ClientID>(
      .init(burst: RouterLimits.testEventBurst, perSecond: RouterLimits.testEventsPerSecond),
      maximumCount: RouterLimits.maximumRateKeys))

  package init(
    burst: Int = RouterLimits.deliveryBurst, perSecond: Double = RouterLimits.deliveriesPerSecond
  ) {
    self.burst = burst
    self.perSecond = perSecond
    repositories = Mutex(
      KeyedBuckets(
        .init(burst: burst, perSecond: perSecond), maximumCount: RouterLimits.maximumRepositories))
  }

  /// Lets one delivery through.
  ///
  /// - Parameter now: `MonotonicClock.nowNanoseconds`.
  /// - Throws: `rate_limited`, with the seconds until the next may come.
  package func take(
    _ repository: SessionID, now: UInt64 = MonotonicClock.nowNanoseconds
  ) throws(RequestError) {
    let wait = repositories.withLock { $0.take(repository, now: now) }
    guard wait > 0 else { return }
    throw Self.requestError(
      "the repository \(repository) has sent over \(burst) deliveries at once, and over \(perSecond) a second",
      hint: "send this one again later: it is not counted as delivered", wait)
  }

  /// Lets one test event through.
  ///
  /// - Parameter now: `MonotonicClock.nowNanoseconds`.
  /// - Throws: as for deliveries.
  package func takeTest(of grant: Grant, now: UInt64 = MonotonicClock.nowNanoseconds) throws(RequestError) {
    let factor = grant.limitFactor
    let wait = clients.withLock { $0.take(grant.client, factor: factor, now: now) }
    guard wait > 0 else { return }
    throw Self.requestError(
      "you have sent over \(RouterLimits.testEventBurst * factor) test events at once, and over "
        + "\(RouterLimits.testEventsPerSecond * Double(factor)) a second",
      hint: "send this one again later", wait)
  }

  private static func requestError(_ message: String, hint: String, _ waitSeconds: Double) -> RequestError {
    var requestError = RequestError(.rateLimited, message, hint: hint)
    requestError.retryAfterSeconds = Int(waitSeconds.rounded(.up))
    return requestError
  }
}
