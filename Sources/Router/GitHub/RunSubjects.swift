/// How a check, a workflow or a deployment stands.
private func outcome(status: String?, conclusion: String?) -> RepositoryEvent.Outcome {
  guard status == nil || status == "completed" else { return .pending }
  return switch conclusion {
  case "success": .success
  case "failure", "timed_out", "action_required", "startup_failure", "error": .failure
  default: .neutral
  }
}

/// `check_run`.
struct CheckRunSubject: GitHubSubject {
  private var action: String
  private var run: Run

  private struct Run: Decodable {
    var name: String
    var status: String
    var conclusion: String?
    var url: String?
    var branch: String?

    private struct Suite: Decodable {
      var branch: String

      enum CodingKeys: String, CodingKey {
        case branch = "head_branch"
      }
    }

    private enum Key: String, CodingKey {
      case name, status, conclusion
      case url = "html_url"
      case suite = "check_suite"
    }

    init(from decoder: any Decoder) throws {
      let fields = try decoder.container(keyedBy: Key.self)
      name = try fields.decode(String.self, forKey: .name)
      status = try fields.decode(String.self, forKey: .status)
      conclusion = fields.lenient(String.self, .conclusion)
      url = fields.lenient(String.self, .url)
      branch = fields.lenient(Suite.self, .suite)?.branch
    }
  }

  private enum CodingKeys: String, CodingKey {
    case action
    case run = "check_run"
  }

  func describe(_ event: inout RepositoryEvent) {
    event.title = run.name
    event.url = run.url
    event.branch = run.branch
    event.outcome = outcome(status: run.status, conclusion: run.conclusion)
  }
}

/// `workflow_run`.
struct WorkflowRunSubject: GitHubSubject {
  private var action: String
  private var run: Run

  private struct Run: Decodable {
    var name: String?
    var title: String?
    var status: String
    var conclusion: String?
    var url: String?
    var branch: String?

    private enum Key: String, CodingKey {
      case name, status, conclusion
      case title = "display_title"
      case url = "html_url"
      case branch = "head_branch"
    }

    init(from decoder: any Decoder) throws {
      let fields = try decoder.container(keyedBy: Key.self)
      name = fields.lenient(String.self, .name)
      title = fields.lenient(String.self, .title)
      status = try fields.decode(String.self, forKey: .status)
      conclusion = fields.lenient(String.self, .conclusion)
      url = fields.lenient(String.self, .url)
      branch = fields.lenient(String.self, .branch)
    }
  }

  private enum CodingKeys: String, CodingKey {
    case action
    case run = "workflow_run"
  }

  func describe(_ event: inout RepositoryEvent) {
    event.title = [run.name, run.title].compactMap(\.self).filter { !$0.isEmpty }.joined(separator: ": ")
    event.url = run.url
    event.branch = run.branch
    event.outcome = outcome(status: run.status, conclusion: run.conclusion)
  }
}

/// `deployment_status`.
struct DeploymentSubject: GitHubSubject {
  private var status: Status
  private var deployment: Deployment?

  private struct Status: Decodable {
    var state: String
    var environment: String?
    var url: String?

    private enum Key: String, CodingKey {
      case state, environment
      case url = "target_url"
    }

    init(from decoder: any Decoder) throws {
      let fields = try decoder.container(keyedBy: Key.self)
      state = try fields.decode(String.self, forKey: .state)
      environment = fields.lenient(String.self, .environment)
      url = fields.lenient(String.self, .url)
    }
  }

  private struct Deployment: Decodable {
    var ref: String?
    var environment: String?
  }

  private enum Key: String, CodingKey {
    case deployment
    case status = "deployment_status"
  }

  init(from decoder: any Decoder) throws {
    let fields = try decoder.container(keyedBy: Key.self)
    status = try fields.decode(Status.self, forKey: .status)
    deployment = fields.lenient(Deployment.self, .deployment)
  }

  func describe(_ event: inout RepositoryEvent) {
    event.title = "\(status.environment ?? deployment?.environment ?? "deployment"): \(status.state)"
    event.url = status.url
    event.branch = deployment?.ref
    event.outcome =
      switch status.state {
      case "success": .success
      case "failure", "error": .failure
      case "inactive": .neutral
      default: .pending
      }
  }
}
