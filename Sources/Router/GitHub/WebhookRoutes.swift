import HTTPTypes
import Hummingbird
import NIOCore
import WireProtocol

/// `POST /webhooks/github`, where GitHub delivers, and `POST /webhooks/event`, where anything else does
/// (`docs/github.md`).
struct WebhookRoutes {
  let receiver: WebhookReceiver
  /// nil where nobody is believed.
  let secret: WebhookSecret?
  private let bodies = WebhookBodies()

  init(receiver: WebhookReceiver, secret: WebhookSecret?) {
    self.receiver = receiver
    self.secret = secret
  }

  func add(to router: Hummingbird.Router<RouterRequestContext>) {
    router.post("webhooks/github") { request, context in
      try await respond(to: request, context) { secret in
        let delivery = try GitHubDelivery(request.headers)
        return { try await receiver.receive(delivery, body: $0, secret: secret) }
      }
    }
    router.post("webhooks/event") { request, context in
      try await respond(to: request, context) { secret in
        let signature = try GitHubDelivery.signature(request.headers)
        return { try await receiver.receive(customEvent: $0, signature: signature, secret: secret) }
      }
    }
  }

  private typealias Take = @Sendable ([UInt8]) async throws -> WebhookReceiver.Answer

  /// - Parameter read: reads the headers, and says what becomes of the body.
  private func respond(
    to request: Request, _ context: RouterRequestContext, _ read: (WebhookSecret) throws -> Take
  ) async throws -> Response {
    do {
      let answer = try await answer(to: request, from: context.clientAddress, read)
      return Response.json(JSON.encode(AnswerBody(answer)), status: answer == .pong ? .ok : .accepted)
    } catch {
      // What is still on its way is not read forever.
      context.channel.close(after: .seconds(RouterLimits.webhookDrainSeconds))
      throw error
    }
  }

  private func answer(
    to request: Request, from address: String?, _ read: (WebhookSecret) throws -> Take
  ) async throws -> WebhookReceiver.Answer {
    guard let secret else {
      throw RequestError(
        .webhooksDisabled, "this Router has no secret to check deliveries with",
        hint: "start it with --github-secret-file, or ANTIPHON_GITHUB_SECRET in its environment")
    }
    let take: Take
    do {
      take = try read(secret)
    } catch let requestError as RequestError {
      receiver.statistics.countDelivery(nil, requestError.report.code.rawValue)
      throw requestError
    }
    let deadline = ContinuousClock.now + .seconds(RouterLimits.webhookAnswerSeconds)
    let body = try await self.read(request, from: ClientID(subject: nil, address: address), until: deadline)
    return try await Self.finish(until: deadline) { try await take(body.bytes) }
  }

  private func read(
    _ request: Request, from address: ClientID, until deadline: ContinuousClock.Instant
  ) async throws -> WebhookBodies.Body {
    do {
      return try await bodies.read(request, from: address, until: deadline)
    } catch let requestError as RequestError where requestError.report.code != .lineTooLong {
      receiver.statistics.countCutBody()
      throw requestError
    }
  }

  /// Waits for the disk no longer than GitHub does. What is saved all the same is a duplicate when it is sent
  /// again.
  private static func finish(
    until deadline: ContinuousClock.Instant,
    _ work: @escaping @Sendable () async throws -> WebhookReceiver.Answer
  ) async throws -> WebhookReceiver.Answer {
    let (answers, continuation) = AsyncThrowingStream.makeStream(of: WebhookReceiver.Answer.self)
    let working = Task {
      do {
        continuation.yield(try await work())
        continuation.finish()
      } catch {
        continuation.finish(throwing: error)
      }
    }
    let timer = Task {
      try? await Task.sleep(until: deadline)
      continuation.finish(
        throwing: RequestError(
          .overloaded, "the delivery was not saved within \(RouterLimits.webhookAnswerSeconds) s",
          hint: "send it again later"))
    }
    defer { timer.cancel() }
    for try await answer in answers { return answer }
    working.cancel()
    throw CancellationError()
  }

  private struct AnswerBody: Encodable {
    var status: String
    var repository: SessionID?
    var number: Int?

    init(_ answer: WebhookReceiver.Answer) {
      status = answer.name
      guard case .queued(let logged) = answer else { return }
      repository = logged.event.repositoryID
      number = logged.number
    }
  }
}

extension Channel {
  /// Closes whatever is still open by then.
  fileprivate func close(after time: TimeAmount) {
    eventLoop.scheduleTask(in: time) { self.close(promise: nil) }
  }
}
