#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// The events API's answer, whose payloads have other shapes than the webhooks' (docs.github.com, "GitHub event
/// types"): github.com leaves out commits and titles, which older GitHub Enterprise Servers still send.
package enum PolledEvents {
  /// Reads an answer. What nothing is made of, or cannot be read, is passed over: it hides no other event.
  ///
  /// - Parameters:
  ///   - site: where people look at the repositories, such as `https://github.com`.
  ///   - now: in milliseconds since 1970; nothing happened later.
  /// - Returns: the oldest first.
  /// - Throws: where the answer is no list.
  package static func read(_ json: [UInt8], site: String, now: Int) throws -> [RepositoryEvent] {
    let events = try JSON.decode([Lenient].self, fromOutside: json).compactMap(\.event)
    return events.reversed().map { event in
      var event = event
      event.receivedMilliseconds = min(event.receivedMilliseconds, now)
      if let path = event.url, path.hasPrefix("/") { event.url = site + path }
      return event.bounded()
    }
  }

  private struct Lenient: Decodable {
    var event: RepositoryEvent?

    init(from decoder: any Decoder) throws {
      event = try? PolledEvent(from: decoder).event
    }
  }
}

/// One of them.
private struct PolledEvent: Decodable {
  /// nil for what nothing is made of.
  var event: RepositoryEvent?

  private enum Key: String, CodingKey {
    case id, type, actor, repo, payload
    case createdAt = "created_at"
  }

  private struct Actor: Decodable {
    var login: String
  }

  private struct Action: Decodable {
    var action: String?
  }

  init(from decoder: any Decoder) throws {
    let fields = try decoder.container(keyedBy: Key.self)
    let type = try fields.decode(String.self, forKey: .type)
    guard let (kind, subject) = try Self.subject(type, fields.superDecoder(forKey: .payload)) else { return }
    let repository = try GitHubEnvelope.Repository(polled: fields.superDecoder(forKey: .repo))
    // Documented as a number, and sent as a text.
    let id = try fields.lenient(String.self, .id) ?? String(fields.decode(Int.self, forKey: .id))
    guard (1...RouterLimits.maximumDeliveryIDLength).contains(id.utf8.count) else { return }
    let created = try Date(fields.decode(String.self, forKey: .createdAt), strategy: .iso8601)
    var event = RepositoryEvent(
      deliveryID: "event-\(id)", kind: kind,
      action: fields.lenient(Action.self, .payload)?.action,
      repositoryID: try repository.sessionID(allowsNames: false), repositoryName: repository.name,
      sender: fields.lenient(Actor.self, .actor)?.login ?? "", title: "",
      receivedMilliseconds: Int(created.timeIntervalSince1970) * 1_000)
    subject.describe(&event)
    self.event = event
  }

  private static func subject(
    _ type: String, _ payload: any Decoder
  ) throws -> (RepositoryEvent.Kind, any EventSubject)? {
    switch type {
    case "PushEvent": (.push, try PolledPush(from: payload))
    case "CreateEvent": try PolledRef(from: payload, verb: "created").map { (.push, $0) }
    case "DeleteEvent": try PolledRef(from: payload, verb: "deleted").map { (.push, $0) }
    case "PullRequestEvent": (.pullRequest, try PolledPullRequest(from: payload))
    case "PullRequestReviewEvent": (.pullRequestReview, try PolledReview(from: payload))
    case "IssuesEvent": (.issues, try IssueSubject(from: payload))
    case "IssueCommentEvent": (.issueComment, try IssueCommentSubject(from: payload))
    case "ReleaseEvent": (.release, try ReleaseSubject(from: payload))
    case "WatchEvent": (.star, PolledStar())
    case "ForkEvent": (.fork, try ForkSubject(from: payload))
    default: nil
    }
  }
}

/// `PushEvent`. Branches that come and go have events of their own.
private struct PolledPush: GitHubSubject {
  private var ref: String
  private var head: String
  private var size: Int?
  private var commits: [Commit]?

  private struct Commit: Decodable {
    var message: String
  }

  private enum Key: String, CodingKey {
    case ref, head, size, commits
  }

  init(from decoder: any Decoder) throws {
    let fields = try decoder.container(keyedBy: Key.self)
    ref = try fields.decode(String.self, forKey: .ref)
    head = try fields.decode(String.self, forKey: .head)
    size = fields.lenient(Int.self, .size)
    commits = fields.lenient([Commit].self, .commits)
  }

  func describe(_ event: inout RepositoryEvent) {
    let branch = PushSubject.branch(of: ref)
    event.branch = branch
    // github.com does not say how many: one at least.
    event.commits = size ?? commits?.count ?? 1
    event.title = commits?.last?.message ?? "pushed to \(branch)"
    event.url = "/\(event.repositoryName)/commit/\(head)"
  }
}

/// `CreateEvent` and `DeleteEvent` of a branch or a tag, of which a webhook's `push` tells.
private struct PolledRef: EventSubject {
  private var ref: String
  private var verb: String

  private enum Key: String, CodingKey {
    case ref
    case type = "ref_type"
  }

  /// nil for a repository.
  init?(from decoder: any Decoder, verb: String) throws {
    let fields = try decoder.container(keyedBy: Key.self)
    guard ["branch", "tag"].contains(try fields.decode(String.self, forKey: .type)) else { return nil }
    ref = try fields.decode(String.self, forKey: .ref)
    self.verb = verb
  }

  func describe(_ event: inout RepositoryEvent) {
    event.branch = ref
    event.title = "\(verb) \(ref)"
  }
}

/// A pull request of which little more than its number is said.
private struct NumberedPullRequest: Decodable {
  private var number: Int
  private var title: String?
  private var isMerged: Bool
  private var branch: String?

  private struct Branch: Decodable {
    var ref: String
  }

  private enum Key: String, CodingKey {
    case number, title, merged, head
  }

  init(from decoder: any Decoder) throws {
    let fields = try decoder.container(keyedBy: Key.self)
    number = try fields.decode(Int.self, forKey: .number)
    title = fields.lenient(String.self, .title)
    isMerged = fields.lenient(Bool.self, .merged) ?? false
    branch = fields.lenient(Branch.self, .head)?.ref
  }

  func describe(_ event: inout RepositoryEvent) {
    event.branch = branch
    event.title = title ?? "#\(number)" + (branch.map { ": \($0)" } ?? "")
    event.url = "/\(event.repositoryName)/pull/\(number)"
    // A webhook's says `closed`, and that it was merged.
    if event.action == "merged" || event.action == "closed" {
      event.outcome = isMerged || event.action == "merged" ? .success : .neutral
      event.action = "closed"
    }
  }
}

/// `PullRequestEvent`.
private struct PolledPullRequest: GitHubSubject {
  private var pullRequest: NumberedPullRequest

  private enum CodingKeys: String, CodingKey {
    case pullRequest = "pull_request"
  }

  func describe(_ event: inout RepositoryEvent) { pullRequest.describe(&event) }
}

/// `PullRequestReviewEvent`.
private struct PolledReview: GitHubSubject {
  private var pullRequest: NumberedPullRequest
  private var review: Review

  private enum CodingKeys: String, CodingKey {
    case review
    case pullRequest = "pull_request"
  }

  func describe(_ event: inout RepositoryEvent) {
    pullRequest.describe(&event)
    event.url = review.url ?? event.url
    event.outcome = review.outcome
  }
}

/// `WatchEvent`, by which GitHub means a star.
private struct PolledStar: EventSubject {
  func describe(_ event: inout RepositoryEvent) {
    event.action = "created"
    event.title = "gave a star"
  }
}
