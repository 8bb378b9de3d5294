/// What issues and their comments have in common.
struct Issue: Decodable {
  var title: String
  var url: String?
  var stateReason: String?

  private enum Key: String, CodingKey {
    case title
    case url = "html_url"
    case stateReason = "state_reason"
  }

  init(from decoder: any Decoder) throws {
    let fields = try decoder.container(keyedBy: Key.self)
    title = try fields.decode(String.self, forKey: .title)
    url = fields.lenient(String.self, .url)
    stateReason = fields.lenient(String.self, .stateReason)
  }
}

/// `issues`.
struct IssueSubject: GitHubSubject {
  private var action: String
  private var issue: Issue

  func describe(_ event: inout RepositoryEvent) {
    event.title = issue.title
    event.url = issue.url
    if action == "closed" { event.outcome = issue.stateReason == "not_planned" ? .neutral : .success }
  }
}

/// `issue_comment`, on issues and pull requests.
struct IssueCommentSubject: GitHubSubject {
  private var action: String
  private var issue: Issue
  private var comment: Comment

  private struct Comment: Decodable {
    var url: String?

    private enum Key: String, CodingKey {
      case url = "html_url"
    }

    init(from decoder: any Decoder) throws {
      url = try decoder.container(keyedBy: Key.self).lenient(String.self, .url)
    }
  }

  func describe(_ event: inout RepositoryEvent) {
    event.title = issue.title
    event.url = comment.url ?? issue.url
  }
}

/// `star`.
struct StarSubject: GitHubSubject {
  private var action: String

  func describe(_ event: inout RepositoryEvent) {
    event.title = action == "deleted" ? "took a star back" : "gave a star"
  }
}

/// `fork`.
struct ForkSubject: GitHubSubject {
  private var fork: Fork

  private struct Fork: Decodable {
    var name: String
    var url: String?

    private enum Key: String, CodingKey {
      case name = "full_name"
      case url = "html_url"
    }

    init(from decoder: any Decoder) throws {
      let fields = try decoder.container(keyedBy: Key.self)
      name = try fields.decode(String.self, forKey: .name)
      url = fields.lenient(String.self, .url)
    }
  }

  private enum CodingKeys: String, CodingKey {
    case fork = "forkee"
  }

  func describe(_ event: inout RepositoryEvent) {
    event.title = "forked to \(fork.name)"
    event.url = fork.url
  }
}
