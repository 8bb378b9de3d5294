import Logging
import ServiceSupport
import WireProtocol

/// Takes deliveries: checks them, reads them and has them kept. The same for GitHub's own and for tests.
struct WebhookReceiver: Sendable {
  /// What a good delivery is answered.
  enum Answer: Sendable, Equatable {
    /// It is kept, and music will be made of it.
    case queued(LoggedEvent)
    /// It was here before.
    case duplicate
    /// Nothing is made of such events.
    case ignored
    /// GitHub tries the webhook out.
    case pong

    var name: String {
      switch self {
      case .queued: "queued"
      case .duplicate: "duplicate"
      case .ignored: "ignored"
      case .pong: "pong"
      }
    }
  }

  let keeper: any EventKeeper
  /// What a repository is called, `owner/name`; nil for one that nothing is known of.
  let name: @Sendable (SessionID) -> String?
  let statistics: RepositoryStatistics
  let limiter = DeliveryLimiter()
  let logger: Logger

  /// - Parameters:
  ///   - body: exactly as it was sent.
  ///   - secret: what it was to be signed with.
  ///   - tester: who sends a test event, of a repository that may be named as a session is; nil for GitHub.
  func receive(
    _ delivery: GitHubDelivery, body: [UInt8], secret: WebhookSecret, testOf tester: Grant? = nil
  ) async throws -> Answer {
    let event = Self.kind(of: delivery)?.rawValue ?? (delivery.event == "ping" ? "ping" : nil)
    return try await counted(event) { try await take(delivery, body, secret, tester) }
  }

  /// - Parameter body: of `POST /webhooks/event`, exactly as it was sent.
  func receive(customEvent body: [UInt8], signature: String, secret: WebhookSecret) async throws -> Answer {
    try await counted(RepositoryEvent.Kind.event.rawValue) {
      guard secret.isValid(signature, of: body) else {
        throw RequestError(
          .unauthorized, "X-Hub-Signature-256 is not this body's",
          hint: "sign the body's bytes with HMAC-SHA256 and the secret that this Router has")
      }
      let own = try CustomEvent.read(body)
      let event = own.event(
        named: name(own.repositoryID),
        receivedMilliseconds: Int(Grant.nowMilliseconds))
      try limiter.take(event.repositoryID)
      return try await take(event)
    }
  }

  private func counted(_ event: String?, _ work: () async throws -> Answer) async throws -> Answer {
    do {
      let answer = try await work()
      statistics.countDelivery(event, answer.name)
      return answer
    } catch {
      let code = (error as? RequestError)?.report.code ?? .internal
      // Before its signature was checked it is a stranger's word.
      statistics.countDelivery(code == .unauthorized ? nil : event, code.rawValue)
      throw error
    }
  }

  private static func kind(of delivery: GitHubDelivery) -> RepositoryEvent.Kind? {
    RepositoryEvent.Kind(rawValue: delivery.event).flatMap { GitHubPayload.has($0) ? $0 : nil }
  }

  private func take(
    _ delivery: GitHubDelivery, _ body: [UInt8], _ secret: WebhookSecret, _ tester: Grant?
  ) async throws -> Answer {
    // Before anything of it is read.
    guard secret.isValid(delivery.signature, of: body) else {
      throw RequestError(
        .unauthorized, "X-Hub-Signature-256 is not this body's",
        hint: "give GitHub's webhook and this Router the same secret")
    }
    if delivery.event == "ping" { return .pong }
    guard let kind = Self.kind(of: delivery) else { return .ignored }
    let event = try GitHubPayload.event(
      kind, deliveryID: delivery.id, json: try json(of: delivery, body),
      receivedMilliseconds: Int(Grant.nowMilliseconds), allowsNames: tester != nil)
    try limiter.take(event.repositoryID)
    return try await take(event, testOf: tester)
  }

  /// Has an event kept.
  func take(_ event: RepositoryEvent, testOf tester: Grant? = nil) async throws -> Answer {
    switch try await append(event, tester) {
    case .duplicate: .duplicate
    case .new(let logged, _, _): .queued(logged)
    }
  }

  private func json(of delivery: GitHubDelivery, _ body: [UInt8]) throws(RequestError) -> [UInt8] {
    guard delivery.encoding == .form else { return body }
    guard let json = FormBody.value(of: "payload", in: body) else {
      throw RequestError(.invalidCommand, "the form has no field payload", hint: "send what GitHub sends")
    }
    return json
  }

  private func append(_ event: RepositoryEvent, _ tester: Grant?) async throws -> EventLog.Appended {
    do {
      return try await keeper.append(event, testOf: tester)
    } catch let requestError as RequestError {
      throw requestError
    } catch is CancellationError {
      throw CancellationError()
    } catch {
      logger.error(
        "a delivery could not be saved: \(error)", metadata: ["session": "\(event.repositoryID)"])
      throw RequestError(
        .overloaded, "the delivery could not be saved",
        hint: "send it again later; the Router's log says why")
    }
  }
}
