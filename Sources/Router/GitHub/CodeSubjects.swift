/// `push`: commits came to a branch, or a branch or tag came or went.
struct PushSubject: GitHubSubject {
  private var ref: String
  private var commits: [Commit]
  private var headCommit: Commit?
  private var isForced: Bool
  private var isDeleted: Bool
  private var comparison: String?

  private struct Commit: Decodable {
    var message: String?
    var url: String?
    var fileCount: Int

    private enum Key: String, CodingKey {
      case message, url, added, removed, modified
    }

    init(from decoder: any Decoder) throws {
      let fields = try decoder.container(keyedBy: Key.self)
      message = fields.lenient(String.self, .message)
      url = fields.lenient(String.self, .url)
      fileCount = [Key.added, .removed, .modified].reduce(0) { count, key in
        count + (fields.lenient([String].self, key)?.count ?? 0)
      }
    }
  }

  private enum Key: String, CodingKey {
    case ref, commits, forced, deleted, compare
    case headCommit = "head_commit"
  }

  init(from decoder: any Decoder) throws {
    let fields = try decoder.container(keyedBy: Key.self)
    ref = try fields.decode(String.self, forKey: .ref)
    commits = try fields.decode([Commit].self, forKey: .commits)
    headCommit = fields.lenient(Commit.self, .headCommit)
    isForced = fields.lenient(Bool.self, .forced) ?? false
    isDeleted = fields.lenient(Bool.self, .deleted) ?? false
    comparison = fields.lenient(String.self, .compare)
  }

  func describe(_ event: inout RepositoryEvent) {
    event.branch = Self.branch(of: ref)
    event.commits = commits.count
    event.changedFiles = commits.reduce(0) { $0 + $1.fileCount }
    event.isForced = isForced
    event.url = headCommit?.url ?? comparison
    event.title =
      headCommit?.message ?? (isDeleted ? "deleted \(event.branch ?? "")" : "pushed to \(event.branch ?? "")")
  }

  /// A branch's or a tag's own name.
  static func branch(of ref: String) -> String {
    let prefix = ["refs/heads/", "refs/tags/"].first(where: ref.hasPrefix) ?? ""
    return String(ref.dropFirst(prefix.count))
  }
}

/// What pull requests and their reviews have in common.
struct PullRequest: Decodable {
  var title: String
  var url: String?
  var isMerged: Bool
  var branch: String?
  var commits: Int?
  var additions: Int?
  var deletions: Int?
  var changedFiles: Int?

  private struct Branch: Decodable {
    var ref: String
  }

  private enum Key: String, CodingKey {
    case title, merged, head, commits, additions, deletions
    case url = "html_url"
    case changedFiles = "changed_files"
  }

  init(from decoder: any Decoder) throws {
    let fields = try decoder.container(keyedBy: Key.self)
    title = try fields.decode(String.self, forKey: .title)
    url = fields.lenient(String.self, .url)
    isMerged = fields.lenient(Bool.self, .merged) ?? false
    branch = fields.lenient(Branch.self, .head)?.ref
    commits = fields.lenient(Int.self, .commits)
    additions = fields.lenient(Int.self, .additions)
    deletions = fields.lenient(Int.self, .deletions)
    changedFiles = fields.lenient(Int.self, .changedFiles)
  }
}

/// `pull_request`.
struct PullRequestSubject: GitHubSubject {
  private var action: String
  private var pullRequest: PullRequest

  private enum CodingKeys: String, CodingKey {
    case action
    case pullRequest = "pull_request"
  }

  func describe(_ event: inout RepositoryEvent) {
    event.title = pullRequest.title
    event.url = pullRequest.url
    event.branch = pullRequest.branch
    event.commits = pullRequest.commits ?? 0
    event.additions = pullRequest.additions
    event.deletions = pullRequest.deletions
    event.changedFiles = pullRequest.changedFiles
    if action == "closed" { event.outcome = pullRequest.isMerged ? .success : .neutral }
  }
}

/// What somebody thinks of a pull request.
struct Review: Decodable {
  var url: String?
  private var state: String

  private enum Key: String, CodingKey {
    case state
    case url = "html_url"
  }

  init(from decoder: any Decoder) throws {
    let fields = try decoder.container(keyedBy: Key.self)
    state = try fields.decode(String.self, forKey: .state)
    url = fields.lenient(String.self, .url)
  }

  var outcome: RepositoryEvent.Outcome {
    switch state.lowercased() {
    case "approved": .success
    case "changes_requested": .failure
    default: .neutral
    }
  }
}

/// `pull_request_review`.
struct ReviewSubject: GitHubSubject {
  private var action: String
  private var review: Review
  private var pullRequest: PullRequest

  private enum CodingKeys: String, CodingKey {
    case action, review
    case pullRequest = "pull_request"
  }

  func describe(_ event: inout RepositoryEvent) {
    event.title = pullRequest.title
    event.url = review.url ?? pullRequest.url
    event.branch = pullRequest.branch
    event.outcome = review.outcome
  }
}

/// `release`.
struct ReleaseSubject: GitHubSubject {
  private var action: String
  private var release: Release

  private struct Release: Decodable {
    var tag: String
    var name: String?
    var url: String?

    private enum Key: String, CodingKey {
      case name
      case tag = "tag_name"
      case url = "html_url"
    }

    init(from decoder: any Decoder) throws {
      let fields = try decoder.container(keyedBy: Key.self)
      tag = try fields.decode(String.self, forKey: .tag)
      name = fields.lenient(String.self, .name)
      url = fields.lenient(String.self, .url)
    }
  }

  func describe(_ event: inout RepositoryEvent) {
    event.title = release.name.flatMap { $0.isEmpty ? nil : $0 } ?? release.tag
    event.url = release.url
    event.branch = release.tag
  }
}
