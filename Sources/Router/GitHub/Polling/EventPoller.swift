import AsyncHTTPClient
import Glibc
import Logging
import NIOCore
import NIOHTTP1
import ServiceSupport
import Synchronization
import WireProtocol

/// Asks GitHub's events API what has happened (docs.github.com, "REST API endpoints for events"): one source after
/// another, each as often as GitHub says.
final class EventPoller: Sendable {
  /// Where GitHub's API is, and who asks.
  struct Options: Sendable {
    static let publicAPI = "https://api.github.com"

    var sources: [GitHubSource]
    /// Without a slash at its end.
    var api: String
    var token: String?

    /// Where people look at the repositories: an Enterprise Server's API is below its pages.
    var site: String {
      guard api != Self.publicAPI else { return "https://github.com" }
      let parts = api.split(separator: "/", omittingEmptySubsequences: false)
      return "\(parts[0])//\(parts[2])"
    }
  }

  private let options: Options
  private let receiver: WebhookReceiver
  private let log: EventLog
  private let logger: Logger
  private let schedule: Mutex<PollSchedule>
  /// Whether it is this Router that asks.
  private let isOn: @Sendable () async -> Bool

  init(
    _ options: Options, receiver: WebhookReceiver, log: EventLog, isOn: @escaping @Sendable () async -> Bool,
    logger: Logger
  ) {
    self.options = options
    self.isOn = isOn
    self.receiver = receiver
    self.log = log
    self.logger = logger
    schedule = Mutex(PollSchedule(options.sources, hasToken: options.token != nil))
  }

  /// How each source stands, for those who look.
  var views: [PolledSourceView] {
    schedule.withLock { schedule in
      schedule.sources.indices.map { index in
        PolledSourceView(
          schedule.sources[index], next: schedule.time(of: index), remaining: schedule.remaining)
      }
    }
  }

  /// Runs until it is cancelled.
  func run() async {
    guard !options.sources.isEmpty else { return }
    var configuration = HTTPClient.Configuration(
      redirectConfiguration: .disallow, timeout: .init(connect: .seconds(RouterLimits.pollAnswerSeconds)))
    configuration.httpVersion = .http1Only
    // Not on the loop that hands packets on.
    let client = HTTPClient(eventLoopGroupProvider: .singleton, configuration: configuration)
    while !Task.isCancelled {
      let (index, time) = schedule.withLock { ($0.next, $0.time(of: $0.next)) }
      try? await Task.sleep(for: .milliseconds((time - Self.now).clamped(to: 0...Self.longestWait)))
      guard !Task.isCancelled else { break }
      guard await isOn() else {
        try? await Task.sleep(for: .seconds(RouterLimits.pollTurnSeconds))
        continue
      }
      let source = options.sources[index]
      let outcome = await poll(source, client)
      guard !Task.isCancelled else { break }
      let (problem, hasChanged) = schedule.withLock { schedule in
        let before = schedule.sources[index].problem
        schedule.take(outcome, of: index, now: Self.now, jitter: .random(in: 0.8...1.2))
        let problem = schedule.sources[index].problem
        return (problem, problem != before)
      }
      guard hasChanged else { continue }
      if let problem {
        logger.warning("\(source.text) is not polled: \(problem)")
      } else {
        logger.info("\(source.text) is polled again")
      }
    }
    try? await client.shutdown()
  }

  /// Also where the clock on the wall was set back.
  private static let longestWait = RouterLimits.pollSecondsRange.upperBound * 1_000

  private static var now: Int { Int(Grant.nowMilliseconds) }

  private func poll(_ source: GitHubSource, _ client: HTTPClient) async -> PollSchedule.Outcome {
    do {
      let mark = try await log.pollMark(of: source.text)
      var (answer, body) = try await ask(source.paths[0], mark, client)
      for path in source.paths.dropFirst() where answer.status == 404 {
        (answer, body) = try await ask(path, mark, client)
      }
      guard answer.status == 200 else {
        receiver.statistics.countPoll("\(answer.status)")
        return .answered(answer)
      }
      try await take(body, of: source, isFirst: mark == nil)
      // Not before all of them are on disk: those of an answer that was not read to its end are asked for again.
      try await receiver.keeper.keepPollMark(answer.etag ?? "", of: source.text)
      receiver.statistics.countPoll("200")
      return .answered(answer)
    } catch {
      receiver.statistics.countPoll("failed")
      return .failed(Self.words(for: error))
    }
  }

  private func take(_ body: [UInt8], of source: GitHubSource, isFirst: Bool) async throws {
    let now = Self.now
    let events = try PolledEvents.read(body, site: options.site, now: now).filter { event in
      source.covers(event.repositoryName)
        // Whose IDs may be forgotten were taken before, or happened before anybody asked.
        && (isFirst || event.receivedMilliseconds > now - RouterLimits.polledMilliseconds)
    }
    for var event in try await log.unknown(events) {
      try Task.checkCancellation()
      if isFirst || event.receivedMilliseconds < now - RouterLimits.heardMilliseconds { event.isPast = true }
      let answer = try await receiver.take(event)
      receiver.statistics.countDelivery(event.kind.rawValue, answer.name)
    }
  }

  // MARK: Requests

  private func ask(
    _ path: String, _ mark: String?, _ client: HTTPClient
  ) async throws -> (PollAnswer, [UInt8]) {
    try await withThrowingTaskGroup(of: (PollAnswer, [UInt8]).self) { tasks in
      tasks.addTask { try await self.follow("\(self.options.api)\(path)?per_page=100", mark, client) }
      // However slowly an answer comes.
      tasks.addTask {
        try await Task.sleep(for: .seconds(RouterLimits.pollAnswerSeconds))
        throw PollError("GitHub did not answer in \(RouterLimits.pollAnswerSeconds) s")
      }
      defer { tasks.cancelAll() }
      return try await tasks.next()!
    }
  }

  /// Follows the redirects of repositories that have another name now, within the API.
  private func follow(
    _ url: String, _ mark: String?, _ client: HTTPClient
  ) async throws -> (PollAnswer, [UInt8]) {
    var url = url
    for _ in 0...RouterLimits.pollRedirects {
      let response = try await client.execute(request(url, mark), deadline: .distantFuture)
      guard let location = response.headers.first(name: "location"),
        [301, 302, 307, 308].contains(response.status.code)
      else { return try await Self.read(response) }
      guard location.hasPrefix(options.api + "/") else {
        throw PollError("GitHub leads to \(location.quoted), which is not at \(options.api)")
      }
      url = location
    }
    throw PollError("GitHub leads on and on, at last to \(url.quoted)")
  }

  private func request(_ url: String, _ mark: String?) -> HTTPClientRequest {
    var request = HTTPClientRequest(url: url)
    request.headers = [
      "accept": "application/vnd.github+json", "user-agent": "Antiphon/\(WireLimits.softwareVersion)",
      "x-github-api-version": "2022-11-28",
    ]
    if let mark, !mark.isEmpty { request.headers.add(name: "if-none-match", value: mark) }
    if let token = options.token { request.headers.add(name: "authorization", value: "Bearer \(token)") }
    return request
  }

  private static func read(_ response: HTTPClientResponse) async throws -> (PollAnswer, [UInt8]) {
    let isGood = response.status == .ok
    let limit = isGood ? RouterLimits.pollByteCount : RouterLimits.pollProblemByteCount
    let body: [UInt8]
    do {
      body = Array(try await response.body.collect(upTo: limit).readableBytesView)
    } catch is NIOTooManyBytesError {
      guard isGood else {
        return (PollAnswer(status: Int(response.status.code), headers: response.headers), [])
      }
      throw PollError("GitHub's answer has over \(limit) bytes")
    }
    let message = isGood ? nil : try? JSON.decode(Message.self, fromOutside: body).message
    return (PollAnswer(status: Int(response.status.code), headers: response.headers, message: message), body)
  }

  private struct Message: Decodable {
    var message: String
  }

  private static func words(for error: any Error) -> String {
    switch error {
    case let error as PollError: error.description
    case let requestError as RequestError: requestError.report.message
    case is DecodingError, is ErrorReport: "GitHub's answer is no list of events"
    default: "GitHub cannot be reached: \(error)"
    }
  }
}

private struct PollError: Error, CustomStringConvertible {
  let description: String

  init(_ description: String) { self.description = description }
}

/// A source as pages show it.
struct PolledSourceView: Codable, Sendable {
  let source: GitHubSource
  /// Since 1970.
  private let lastPoll: Int?
  private let nextPoll: Int
  private let remaining: Int?
  /// What is wrong, and what to do.
  private let problem: String?

  init(_ source: PollSchedule.Source, next: Int, remaining: Int?) {
    self.source = source.source
    lastPoll = source.lastPoll
    nextPoll = next
    self.remaining = remaining
    problem = source.problem
  }

  init(from decoder: any Decoder) throws {
    let fields = try decoder.container(keyedBy: Key.self)
    let name = try fields.decode(String.self, forKey: .name)
    guard let source = GitHubSource(name) else {
      throw DecodingError.dataCorruptedError(
        forKey: .name, in: fields, debugDescription: "no source: \(name)")
    }
    self.source = source
    lastPoll = try fields.decodeIfPresent(Int.self, forKey: .lastPoll)
    nextPoll = try fields.decode(Int.self, forKey: .nextPoll)
    remaining = try fields.decodeIfPresent(Int.self, forKey: .remaining)
    problem = try fields.decodeIfPresent(String.self, forKey: .problem)
  }

  func isNewer(than other: PolledSourceView) -> Bool { lastPoll ?? 0 > other.lastPoll ?? 0 }

  private enum Key: String, CodingKey {
    case name, problem
    case lastPoll = "last_poll_ms"
    case nextPoll = "next_poll_ms"
    case remaining = "requests_left"
  }

  func encode(to encoder: any Encoder) throws {
    var fields = encoder.container(keyedBy: Key.self)
    try fields.encode(source.text, forKey: .name)
    try fields.encodeIfPresent(lastPoll, forKey: .lastPoll)
    try fields.encode(nextPoll, forKey: .nextPoll)
    try fields.encodeIfPresent(remaining, forKey: .remaining)
    try fields.encodeIfPresent(problem, forKey: .problem)
  }
}
