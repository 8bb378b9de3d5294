import WireProtocol

/// An event that somebody wants to hear without GitHub: what the body of `POST /stream/ID/test` says.
struct TestDelivery: Decodable {
  var event: RepositoryEvent.Kind
  /// `owner/name`.
  var repository: String?
  var language: String?
  var sender: String?
  var title: String?
  var branch: String?
  var action: String?
  var outcome: RepositoryEvent.Outcome?
  /// 0 to 100.
  var commits: Int?
  var forced: Bool?

  private enum CodingKeys: String, CodingKey {
    case event, repository, language, sender, title, branch, action, outcome, commits, forced
  }

  private static let commitRange = 0...100

  init(from decoder: any Decoder) throws {
    let fields = try decoder.container(keyedBy: CodingKeys.self)
    let name = try fields.decode(String.self, forKey: .event)
    guard let kind = RepositoryEvent.Kind(rawValue: name), GitHubPayload.has(kind) else {
      let names = RepositoryEvent.Kind.allCases.filter(GitHubPayload.has).map(\.rawValue).joined(
        separator: ", ")
      throw Self.wrong("event is \(name.quoted), not one of \(names)")
    }
    event = kind
    repository = try fields.decodeIfPresent(String.self, forKey: .repository)
    language = try fields.decodeIfPresent(String.self, forKey: .language)
    sender = try fields.decodeIfPresent(String.self, forKey: .sender)
    title = try fields.decodeIfPresent(String.self, forKey: .title)
    branch = try fields.decodeIfPresent(String.self, forKey: .branch)
    action = try fields.decodeIfPresent(String.self, forKey: .action)
    forced = try fields.decodeIfPresent(Bool.self, forKey: .forced)
    if let name = try fields.decodeIfPresent(String.self, forKey: .outcome) {
      guard let outcome = RepositoryEvent.Outcome(rawValue: name) else {
        throw Self.wrong(
          "outcome is \(name.quoted), not success, failure, neutral or pending")
      }
      self.outcome = outcome
    }
    if let number = try fields.decodeIfPresent(Double.self, forKey: .commits) {
      guard let commits = Int(exactly: number), Self.commitRange.contains(commits) else {
        throw Self.wrong("commits is not a whole number from 0 to 100")
      }
      self.commits = commits
    }
  }

  private static func wrong(_ message: String) -> ErrorReport {
    ErrorReport(
      .invalidCommand, message, hint: "docs/http-and-websocket.md lists the fields", stage: .command)
  }

  // MARK: As GitHub would say it

  /// - Parameter known: the repository's name, where something has happened in it already.
  func payload(for id: SessionID, named known: String?) -> [UInt8] {
    var fields = subject
    fields["repository"] = [
      "id": .text(id.description),
      "full_name": .text(
        repository ?? known.flatMap { GitHubEnvelope.Repository.isName($0) ? $0 : nil } ?? "sample/repository"
      ),
      "language": .text(language ?? "Swift"), "private": false,
    ]
    fields["sender"] = ["login": .text(sender ?? "octocat"), "type": "User"]
    return JSON.encode(SampleValue.object(fields))
  }

  private var subject: [String: SampleValue] {
    switch event {
    case .push: push
    case .pullRequest:
      ["action": word(["success": "closed", "neutral": "closed"], "opened"), "pull_request": pullRequest]
    case .pullRequestReview:
      ["action": word([:], "submitted"), "pull_request": pullRequest, "review": review]
    case .checkRun: ["action": word(["pending": "created"], "completed"), "check_run": run]
    case .workflowRun: ["action": word(["pending": "requested"], "completed"), "workflow_run": run]
    case .deploymentStatus:
      [
        "action": "created",
        "deployment_status": [
          "state": .text(outcome?.rawValue ?? "success"), "environment": text(title, "production"),
        ],
        "deployment": ["ref": text(branch, "main")],
      ]
    case .issues: ["action": word(["success": "closed", "neutral": "closed"], "opened"), "issue": issue]
    case .issueComment: ["action": word([:], "created"), "issue": issue, "comment": ["body": "Thank you."]]
    case .release:
      [
        "action": word([:], "published"),
        "release": ["tag_name": text(branch, "v1.0.0"), "name": text(title, "1.0.0")],
      ]
    case .star: ["action": word([:], "created")]
    case .fork: ["forkee": ["full_name": .text("\(sender ?? "octocat")/fork")]]
    case .event: [:]
    }
  }

  private var push: [String: SampleValue] {
    let count = commits ?? 3
    let commit: SampleValue = [
      "message": text(title, "Let the music begin"), "added": [], "removed": [], "modified": ["README.md"],
    ]
    return [
      "ref": .text("refs/heads/\(branch ?? "main")"), "forced": .flag(forced ?? false), "deleted": false,
      "commits": .list(Array(repeating: commit, count: count)), "head_commit": count > 0 ? commit : .null,
    ]
  }

  private var pullRequest: SampleValue {
    [
      "title": text(title, "Sing of it"), "merged": .flag(outcome == .success),
      "head": ["ref": text(branch, "song")],
      "commits": .number(commits ?? 3), "additions": 120, "deletions": 30, "changed_files": 4,
    ]
  }

  private var review: SampleValue {
    let states: [RepositoryEvent.Outcome: SampleValue] = [
      .failure: "changes_requested", .neutral: "commented",
    ]
    return ["state": outcome.flatMap { states[$0] } ?? "approved"]
  }

  private var run: SampleValue {
    let isPending = outcome == .pending
    return [
      "name": text(title, "Tests"), "status": isPending ? "in_progress" : "completed",
      "conclusion": isPending ? .null : .text(outcome?.rawValue ?? "success"),
      "head_branch": text(branch, "main"),
      "check_suite": ["head_branch": text(branch, "main")],
    ]
  }

  private var issue: SampleValue {
    [
      "title": text(title, "It is too quiet"),
      "state_reason": outcome == .neutral ? "not_planned" : "completed",
    ]
  }

  private func text(_ own: String?, _ usual: String) -> SampleValue { .text(own ?? usual) }

  /// The action that goes with an outcome, where none is asked for.
  private func word(_ byOutcome: [String: SampleValue], _ usual: SampleValue) -> SampleValue {
    action.map { .text($0) } ?? outcome.flatMap { byOutcome[$0.rawValue] } ?? usual
  }
}

/// JSON as it is written down in `TestDelivery`.
enum SampleValue: Encodable, ExpressibleByStringLiteral, ExpressibleByIntegerLiteral,
  ExpressibleByBooleanLiteral,
  ExpressibleByArrayLiteral, ExpressibleByDictionaryLiteral
{
  case text(String)
  case number(Int)
  case flag(Bool)
  case null
  case list([SampleValue])
  case object([String: SampleValue])

  init(stringLiteral text: String) { self = .text(text) }
  init(integerLiteral number: Int) { self = .number(number) }
  init(booleanLiteral flag: Bool) { self = .flag(flag) }
  init(arrayLiteral elements: SampleValue...) { self = .list(elements) }
  init(dictionaryLiteral elements: (String, SampleValue)...) {
    self = .object(Dictionary(elements, uniquingKeysWith: { $1 }))
  }

  func encode(to encoder: any Encoder) throws {
    var value = encoder.singleValueContainer()
    switch self {
    case .text(let text): try value.encode(text)
    case .number(let number): try value.encode(number)
    case .flag(let flag): try value.encode(flag)
    case .null: try value.encodeNil()
    case .list(let list): try value.encode(list)
    case .object(let object): try value.encode(object)
    }
  }
}
