import NIOCore
import ServiceSupport
import WireProtocol

/// Who asked, and how to answer. Used on the data plane's loop.
enum Requester {
  /// What is answered to what was asked.
  enum Answer: Sendable, Codable {
    case event(EngineEvent)
    case queue(SessionID, QueueView)
    case history(SessionID, HistoryView)
    case pong(Double)
  }

  case webSocket(WebSocketListener, requestID: String?, CommandCharge)
  case http(EventLoopPromise<Answer>, requestID: String?, ClientID, limitFactor: Int)
  /// One with an idempotency key, whose answer is kept (`DataPlane+Idempotency.swift`).
  indirect case idempotent(Requester, Intent, DataPlane)
  /// The Router itself, for all to hear of: the queue, and sessions that go on after an engine's restart.
  case router
  /// The Router itself, for a step of something else.
  ///
  /// - Parameters:
  ///   - onBehalfOf: who has had the answer when the others are told.
  ///   - client: for whom.
  case routerStep((EngineEvent) -> Void, onBehalfOf: WebSocketListener? = nil, client: ClientID = .router)

  var webSocket: WebSocketListener? {
    switch self {
    case .webSocket(let listener, _, _): listener
    case .idempotent(let requester, _, _): requester.webSocket
    case .routerStep(_, let listener, _): listener
    case .http, .router: nil
    }
  }

  /// Whom it is accounted to.
  var client: ClientID {
    switch self {
    case .webSocket(let listener, _, _): listener.request.grant.client
    case .http(_, _, let client, _), .routerStep(_, _, let client): client
    case .idempotent(let requester, _, _): requester.client
    case .router: .router
    }
  }

  /// How many times the usual limits its client's are.
  var limitFactor: Int {
    switch self {
    case .webSocket(let listener, _, _): listener.request.grant.limitFactor
    case .http(_, _, _, let factor): factor
    case .idempotent(let requester, _, _): requester.limitFactor
    case .routerStep, .router: 1
    }
  }

  var isRouterStep: Bool {
    if case .routerStep = self { true } else { false }
  }

  /// Answers once, with the requester's own request ID.
  ///
  /// - Parameter queue: what the answer shows, where others are shown the same.
  func answer(_ answer: Answer, showing queue: (EncodedQueue, of: RoutedSession)? = nil) {
    switch self {
    case .webSocket(let listener, let requestID, let charge):
      charge.end()
      listener.statistics.count(.success(answer))
      if let (queue, session) = queue {
        listener.outlet.sendText(.queue(queue, of: session, requestID: requestID))
      } else {
        listener.outlet.sendText(TextMessage(WebSocketFrames.text(Self.json(answer, requestID))))
      }
    case .http(let promise, let requestID, _, _):
      if case .event(var event) = answer {
        event.requestID = requestID
        if case .error(let report) = event.body { return promise.fail(RequestError(report)) }
        promise.succeed(.event(event))
      } else {
        promise.succeed(answer)
      }
    case .routerStep(let take, _, _): if case .event(let event) = answer { take(event) }
    case .idempotent(let requester, let intent, let plane): plane.finish(intent, answer, for: requester)
    case .router: break
    }
  }

  /// Says, in the turn in which a change is saved, what it is going to be answered with: what is kept of the
  /// answer is written in the transaction of the change.
  func willAnswer(_ answer: Answer) {
    if case .idempotent(_, let intent, let plane) = self { plane.keep(answer, to: intent) }
  }

  /// What was to be answered could not be written, and is not in effect.
  func refuseUnwritten(_ report: ErrorReport, sessionID: SessionID) {
    if case .idempotent(_, let intent, let plane) = self { plane.retract(intent) }
    refuse(report, sessionID: sessionID)
  }

  func refuse(_ report: ErrorReport, sessionID: SessionID?) {
    answer(.event(EngineEvent(.error(report), sessionID: sessionID)))
  }

  private static func json(_ answer: Answer, _ requestID: String?) -> [UInt8] {
    switch answer {
    case .event(var event):
      event.requestID = requestID
      return event.encoded()
    case .queue(let sessionID, let view):
      return JSON.encode(QueueMessage(sessionID: sessionID, requestID: requestID, queue: view))
    case .history(let sessionID, let view):
      return JSON.encode(HistoryMessage(sessionID: sessionID, requestID: requestID, history: view))
    case .pong(let t):
      return JSON.encode(
        PongMessage(requestID: requestID, t: t, nowNanoseconds: MonotonicClock.nowNanoseconds))
    }
  }
}

extension RouterStatistics {
  /// Counts what a command was answered with.
  func count(_ result: Result<Requester.Answer, any Error>) {
    switch result {
    case .success(.event(let event)):
      if case .error(let report) = event.body { countCommand(report.code) } else { countCommand(nil) }
    case .success: countCommand(nil)
    case .failure(let requestError as RequestError): countCommand(requestError.report.code)
    case .failure: countCommand(.internal)
    }
  }
}
