/// When which source is asked next. All share GitHub's limits, so that they are asked one after another, and no
/// faster than what is left of the limit lasts. Pure: times are milliseconds since 1970.
package struct PollSchedule: Sendable {
  /// What came of asking a source.
  package enum Outcome: Sendable {
    case answered(PollAnswer)
    /// No answer, or one that could not be read.
    case failed(String)
  }

  package struct Source: Sendable {
    package let source: GitHubSource
    package fileprivate(set) var lastPoll: Int?
    package fileprivate(set) var problem: String?
    fileprivate var due = 0
    fileprivate var failures = 0
  }

  package private(set) var sources: [Source]
  /// What is left of the limit, as the last answer had it.
  package private(set) var remaining: Int?
  private let hasToken: Bool
  private var pausedUntil = 0
  private var limitCount = 0
  /// Between two requests.
  private var gap = 0
  private var lastRequest = 0

  package init(_ sources: [GitHubSource], hasToken: Bool) {
    self.sources = sources.map { Source(source: $0) }
    self.hasToken = hasToken
  }

  /// The one that is to be asked next: where the limit alone decides when, the one that has waited longest.
  package var next: Int {
    sources.indices.min { (time(of: $0), sources[$0].due) < (time(of: $1), sources[$1].due) }!
  }

  /// When it is to be asked.
  package func time(of index: Int) -> Int {
    let source = sources[index]
    // The first answers come soon, whatever is left.
    return max(source.due, pausedUntil, source.lastPoll == nil ? 0 : lastRequest + gap)
  }

  /// - Parameter jitter: around 1, by which attempts after failures are spread.
  package mutating func take(_ outcome: Outcome, of index: Int, now: Int, jitter: Double = 1) {
    lastRequest = now
    sources[index].lastPoll = now
    if case .answered(let answer) = outcome { takeLimits(answer, now) }
    func retry(after seconds: Int, most: Int, _ count: Int) -> Int {
      now + Int(Double(min(seconds << min(count, 16), most)) * 1_000 * jitter)
    }
    let failures = sources[index].failures
    switch outcome {
    case .answered(let answer) where answer.status < 400:
      let seconds = answer.intervalSeconds ?? RouterLimits.pollSeconds
      sources[index].due = now + seconds.clamped(to: RouterLimits.pollSecondsRange) * 1_000
      sources[index].failures = 0
      sources[index].problem = nil
      limitCount = 0
      return
    case .answered(let answer) where answer.isLimit:
      let untilReset = answer.remaining == 0 ? answer.resetSeconds.map { $0 - now / 1_000 } : nil
      let said = answer.retryAfterSeconds ?? untilReset
      pausedUntil =
        said.map { now + $0.clamped(to: RouterLimits.pollSecondsRange) * 1_000 }
        ?? retry(after: RouterLimits.pollSeconds, most: RouterLimits.pollSecondsRange.upperBound, limitCount)
      limitCount += 1
      sources[index].problem = words(for: answer, sources[index].source)
      return
    case .answered(let answer) where answer.status < 500:
      sources[index].due = retry(
        after: RouterLimits.pollSeconds, most: RouterLimits.pollSecondsRange.upperBound, failures)
      sources[index].problem = words(for: answer, sources[index].source)
    case .answered(let answer):
      sources[index].due = retry(
        after: RouterLimits.pollRetrySeconds, most: RouterLimits.pollLongestRetrySeconds, failures)
      sources[index].problem = words(for: answer, sources[index].source)
    case .failed(let problem):
      sources[index].due = retry(
        after: RouterLimits.pollRetrySeconds, most: RouterLimits.pollLongestRetrySeconds, failures)
      sources[index].problem = problem
    }
    sources[index].failures += 1
  }

  private mutating func takeLimits(_ answer: PollAnswer, _ now: Int) {
    guard let remaining = answer.remaining, let reset = answer.resetSeconds else { return }
    self.remaining = remaining
    let left = (reset * 1_000 - now).clamped(to: 0...RouterLimits.pollSecondsRange.upperBound * 1_000)
    gap = left / max(remaining, 1)
  }

  private func words(for answer: PollAnswer, _ source: GitHubSource) -> String {
    let own = answer.message.map { " (\($0))" } ?? ""
    let token = hasToken ? "" : "; a token, --github-token-file, has 5,000 requests an hour instead of 60"
    return switch answer.status {
    case _ where answer.isLimit: "GitHub's rate limit is reached\(own)\(token)"
    case 401: "GitHub refuses the token\(own): put a valid one into the file of --github-token-file"
    case 404, 410:
      "GitHub shows no \(source.text)\(own): the name is wrong, or it is private; "
        + (hasToken
          ? "this token may not read it" : "then --github-token-file needs a token that may read it")
    default: "GitHub answers \(answer.status)\(own)"
    }
  }
}
