import NIOHTTP1
import RouterCore
import Testing

@Suite struct `The events API` {
  private static let now = 1_790_000_000_000

  /// One event as the API has it.
  private static func read(_ type: String, _ payload: String, more: String = "") throws -> RepositoryEvent? {
    let json = """
      [{"id": "22249084947", "type": "\(type)", "actor": {"login": "octocat"},
        "repo": {"id": 1296269, "name": "octocat/Hello-World"}, "payload": \(payload),
        "created_at": "2022-06-09T12:47:28Z"\(more)}]
      """
    return try PolledEvents.read(Array(json.utf8), site: "https://github.com", now: now).first
  }

  private static let number = #"{"number": 2, "head": {"ref": "changes"}}"#

  /// Type, payload; kind, action, outcome, title, commits.
  @Test(
    arguments: [
      (
        "PushEvent", #"{"ref": "refs/heads/main", "head": "a1", "before": "b2"}"#,
        "push", nil, nil, "pushed to main", 1
      ),
      (
        "PushEvent",
        #"{"ref": "refs/tags/v1", "head": "a1", "size": 2, "commits": [{"message": "Sing\n\nLoud"}]}"#,
        "push", nil, nil, "Sing", 2
      ),
      ("CreateEvent", #"{"ref": "b", "ref_type": "branch"}"#, "push", nil, nil, "created b", 0),
      ("DeleteEvent", #"{"ref": "t", "ref_type": "tag"}"#, "push", nil, nil, "deleted t", 0),
      (
        "PullRequestEvent", #"{"action": "opened", "pull_request": \#(number)}"#,
        "pull_request", "opened", nil, "#2: changes", 0
      ),
      (
        "PullRequestEvent", #"{"action": "merged", "pull_request": \#(number)}"#,
        "pull_request", "closed", "success", "#2: changes", 0
      ),
      (
        "PullRequestEvent", #"{"action": "closed", "pull_request": {"number": 2, "title": "T"}}"#,
        "pull_request", "closed", "neutral", "T", 0
      ),
      (
        "PullRequestEvent", #"{"action": "closed", "pull_request": {"number": 2, "merged": true}}"#,
        "pull_request", "closed", "success", "#2", 0
      ),
      (
        "PullRequestReviewEvent",
        #"{"action": "created", "review": {"state": "changes_requested"}, "pull_request": \#(number)}"#,
        "pull_request_review", "created", "failure", "#2: changes", 0
      ),
      ("IssuesEvent", #"{"action": "opened", "issue": {"title": "T"}}"#, "issues", "opened", nil, "T", 0),
      (
        "IssueCommentEvent", #"{"action": "created", "issue": {"title": "T"}, "comment": {}}"#,
        "issue_comment", "created", nil, "T", 0
      ),
      (
        "ReleaseEvent", #"{"action": "published", "release": {"tag_name": "v1"}}"#,
        "release", "published", nil, "v1", 0
      ),
      ("WatchEvent", #"{"action": "started"}"#, "star", "created", nil, "gave a star", 0),
      (
        "ForkEvent", #"{"action": "forked", "forkee": {"full_name": "hubot/x"}}"#,
        "fork", "forked", nil, "forked to hubot/x", 0
      ),
    ] as [(String, String, String, String?, String?, String, Int)])
  func `is read as webhooks are`(
    _ type: String, _ payload: String, _ kind: String, _ action: String?, _ outcome: String?, _ title: String,
    _ commits: Int
  ) throws {
    let event = try #require(try Self.read(type, payload))
    #expect(event.kind.rawValue == kind && event.action == action && event.title == title)
    #expect(event.outcome?.rawValue == outcome && event.commits == commits)
    #expect(event.sender == "octocat" && event.repositoryName == "octocat/Hello-World")
    #expect(event.repositoryID.description == "1296269" && event.deliveryID == "event-22249084947")
    #expect(event.receivedMilliseconds == 1_654_778_848_000)
  }

  @Test(arguments: [
    ("GollumEvent", "{}"), ("CreateEvent", #"{"ref": null, "ref_type": "repository"}"#), ("PushEvent", "{}"),
    ("PushEvent", "null"), ("PullRequestEvent", #"{"action": "opened"}"#), ("event", "{}"),
  ])
  func `plays nothing of`(_ type: String, _ payload: String) throws {
    #expect(try Self.read(type, payload) == nil)
  }

  @Test func `hides no event behind a broken one, and is read from the oldest on`() throws {
    func star(_ id: String, _ created: String) -> String {
      #"{"id": \#(id), "type": "WatchEvent", "repo": {"id": 1, "name": "a/b"}, "payload": {}, "created_at": "\#(created)"}"#
    }
    let list = [
      star("3", "2999-01-01T00:00:00Z"), "7", star("2", "yesterday"), star(#""1""#, "2022-06-09T12:47:28Z"),
    ]
    let json = Array("[\(list.joined(separator: ","))]".utf8)
    let events = try PolledEvents.read(json, site: "https://github.com", now: Self.now)
    #expect(events.map(\.deliveryID) == ["event-1", "event-3"])
    // Nothing happens in the future.
    #expect(events.last?.receivedMilliseconds == Self.now && events.last?.sender == "ghost")
    #expect(throws: (any Error).self) { try PolledEvents.read(Array("{}".utf8), site: "", now: 0) }
  }

  @Test func `links to where people look`() throws {
    let push = try Self.read("PushEvent", #"{"ref": "refs/heads/main", "head": "a1"}"#)
    #expect(push?.url == "https://github.com/octocat/Hello-World/commit/a1")
  }
}

@Suite struct `Sources of events` {
  @Test(arguments: [
    ("octocat/Hello-World", "OctoCat/hello-world", true), ("octocat/Hello-World", "octocat/other", false),
    ("octocat/*", "Octocat/anything", true), ("octocat/*", "octocat2/anything", false),
    ("octocat/*", "octocat", false),
  ])
  func `cover`(_ source: String, _ repository: String, _ isCovered: Bool) throws {
    #expect(try #require(GitHubSource(source)).covers(repository) == isCovered)
  }

  @Test(arguments: ["", "octocat", "*/x", "*", "a/b/c", "a/", "/b", "a/..", "../a", "a/b?c", "a b/c", "a/*b"])
  func `are not`(_ text: String) {
    #expect(GitHubSource(text) == nil)
  }

  @Test(arguments: ["octo", "=a/b", "octo=", "octo=a", "o c=a/b", "4711=a/b"])
  func `are no station's`(_ text: String) {
    #expect(GroupStation(text) == nil)
  }
}

@Suite struct `When sources are asked` {
  private static let now = 1_790_000_000_000
  private static let sources = [GitHubSource("a/one")!, GitHubSource("a/two")!]

  private static func answer(_ status: Int, _ headers: [(String, String)] = [], _ message: String? = nil)
    -> PollSchedule.Outcome
  {
    .answered(PollAnswer(status: status, headers: HTTPHeaders(headers), message: message))
  }

  /// What was answered; seconds until that source and the other are asked; words for what is wrong.
  @Test(arguments: [
    (answer(200, [("X-Poll-Interval", "90")]), 90, 0, ""), (answer(304), 60, 0, ""),
    (answer(200, [("X-Poll-Interval", "0")]), 1, 0, ""),
    (answer(200, [("X-Poll-Interval", "-9")]), 60, 0, ""),
    (answer(200, [("X-Poll-Interval", "999999999999999999999")]), 60, 0, ""),
    (answer(404), 60, 0, "private"), (answer(401, [], "Bad credentials"), 60, 0, "Bad credentials"),
    (answer(403, [], "Resource not accessible"), 60, 0, "403"), (answer(503), 5, 0, "503"),
    (.failed("no way"), 5, 0, "no way"), (answer(429, [("Retry-After", "120")]), 120, 120, "rate limit"),
    (answer(403, [("Retry-After", "7")]), 7, 7, "rate limit"),
    (
      answer(403, [("X-RateLimit-Remaining", "0"), ("X-RateLimit-Reset", "1790000600")]), 600, 600,
      "rate limit"
    ),
    (answer(403, [("X-RateLimit-Remaining", "0"), ("X-RateLimit-Reset", "1")]), 1, 1, "rate limit"),
    (answer(403, [], "You have exceeded a secondary rate limit"), 60, 60, "secondary"),
    (answer(429), 60, 60, "rate limit"),
  ])
  func `after`(_ outcome: PollSchedule.Outcome, _ own: Int, _ other: Int, _ words: String) {
    var schedule = PollSchedule(Self.sources, hasToken: false)
    schedule.take(outcome, of: 0, now: Self.now)
    #expect((schedule.time(of: 0) - Self.now) / 1_000 == own)
    #expect(max(0, schedule.time(of: 1) - Self.now) / 1_000 == other)
    #expect(words.isEmpty || schedule.sources[0].problem?.contains(words) == true)
    #expect((schedule.sources[0].problem == nil) == words.isEmpty)
  }

  @Test func `again and again after failures, more and more seldom`() {
    var schedule = PollSchedule(Self.sources, hasToken: true)
    var waits: [Int] = []
    for _ in 0..<30 {
      schedule.take(Self.answer(500), of: 0, now: Self.now)
      waits.append((schedule.time(of: 0) - Self.now) / 1_000)
    }
    #expect(waits.prefix(9) == [5, 10, 20, 40, 80, 160, 320, 640, 900] && waits.last == 900)
    schedule.take(Self.answer(304), of: 0, now: Self.now)
    schedule.take(Self.answer(500), of: 0, now: Self.now)
    #expect((schedule.time(of: 0) - Self.now) / 1_000 == 5)
  }

  @Test func `no faster than what is left lasts, and in turn`() {
    var schedule = PollSchedule(Self.sources, hasToken: false)
    var now = Self.now
    var asked: [Int] = []
    for index in 0..<6 {
      let next = schedule.next
      // The first answer of each comes at once.
      #expect(index < 2 || schedule.time(of: next) - now == 60_000)
      now = max(now, schedule.time(of: next))
      let reset = String(now / 1_000 + 3_600)
      let answer = Self.answer(200, [("X-RateLimit-Remaining", "60"), ("X-RateLimit-Reset", reset)])
      schedule.take(answer, of: next, now: now)
      asked.append(next)
    }
    #expect(asked == [0, 1, 0, 1, 0, 1] && schedule.remaining == 60)
  }
}

@Suite struct `An event of anything else` {
  private static func read(_ json: String) throws -> RepositoryEvent {
    try CustomEvent.read(Array(json.utf8)).event(named: nil, receivedMilliseconds: 1)
  }

  @Test func `has what it says`() throws {
    let event = try Self.read(
      #"{"source": "door", "id": "1", "title": "It rings", "actor": "Ann", "outcome": "success", "magnitude": 0.5}"#
    )
    #expect(
      event.kind == .event && event.repositoryID.description == "door" && event.repositoryName == "door")
    #expect(event.title == "It rings" && event.sender == "Ann" && event.outcome == .success)
    #expect(event.magnitude == 0.5 && event.deliveryID == "own-door-1")
    #expect(
      try Self.read(#"{"source": "ci", "id": "1", "title": "T", "kind": "check_run"}"#).kind == .checkRun)
  }

  @Test(arguments: [
    (#"{"id": "1", "title": "T"}"#, "source"), (#"{"source": "a b", "id": "1", "title": "T"}"#, "session ID"),
    (#"{"source": "a", "title": "T"}"#, "id"),
    (#"{"source": "a", "id": "", "title": "T"}"#, "id has 0 bytes"),
    (#"{"source": "a", "id": "1"}"#, "title"), (#"{"source": "a", "id": "1", "title": 7}"#, "title"),
    (#"{"source": "a", "id": "1", "title": "T", "kind": "ring"}"#, "pull_request_review"),
    (#"{"source": "a", "id": "1", "title": "T", "outcome": "good"}"#, "success, failure"),
    (#"{"source": "a", "id": "1", "title": "T", "magnitude": 1.1}"#, "0 to 1"),
    ("[]", "object"), ("", "object"),
  ])
  func `is refused`(_ json: String, _ words: String) {
    let error = #expect(throws: (any Error).self) { try Self.read(json) }
    let report = (error as? RequestError)?.report
    #expect(report?.message.contains(words) == true, "\(String(describing: report))")
  }

  @Test func `is as big as it says`() throws {
    let small = try Self.read(#"{"source": "a", "id": "1", "title": "T", "magnitude": 0}"#)
    let large = try Self.read(#"{"source": "a", "id": "1", "title": "T", "magnitude": 1}"#)
    func intensity(_ event: RepositoryEvent) -> Double {
      MusicMapper.parameters(for: event, history: MusicHistory(), mapping: .standard).intensity
    }
    #expect(intensity(small) < intensity(large))
  }
}
