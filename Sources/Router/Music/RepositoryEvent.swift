import WireProtocol

/// What happened in a repository, whatever the shape of the webhook that told of it.
package struct RepositoryEvent: Codable, Sendable, Equatable {
  /// GitHub's name of the delivery. Everything random in the event's music comes from it.
  package var deliveryID: String
  package var kind: Kind
  /// GitHub's word for what happened to the subject: `opened`, `closed`, `submitted`, `completed`, …
  package var action: String?
  package var repositoryID: SessionID
  /// `owner/name`.
  package var repositoryName: String
  /// The repository's main language, in GitHub's spelling.
  package var language: String?
  package var sender: String
  /// One line of at most 200 scalars.
  package var title: String
  package var url: String?
  package var outcome: Outcome?
  package var commits: Int
  package var additions: Int?
  package var deletions: Int?
  package var changedFiles: Int?
  package var branch: String?
  /// Whether a push rewrote what was there.
  package var isForced: Bool
  /// How big it is, 0 to 1, where its source says so; nil for what commits and lines tell.
  package var magnitude: Double?
  /// Since 1970.
  package var receivedMilliseconds: Int
  /// Whether it was over long before the Router heard of it: then it is listed and not heard.
  package var isPast: Bool?

  /// The events that sound, by GitHub's names where they have one.
  package enum Kind: String, Codable, Sendable, CaseIterable {
    case push
    case pullRequest = "pull_request"
    case pullRequestReview = "pull_request_review"
    case checkRun = "check_run"
    case workflowRun = "workflow_run"
    case deploymentStatus = "deployment_status"
    case issues
    case issueComment = "issue_comment"
    case release, star, fork
    /// A custom event, from any other program than GitHub.
    case event
  }

  /// How it went, for those that can go one way or another. A merged pull request is a success and one that was
  /// closed without it neutral; a review that approves is a success and one that asks for changes a failure.
  package enum Outcome: String, Codable, Sendable, CaseIterable {
    case success, failure, neutral, pending
  }

  package init(
    deliveryID: String, kind: Kind, action: String? = nil, repositoryID: SessionID, repositoryName: String,
    language: String? = nil, sender: String, title: String, url: String? = nil, outcome: Outcome? = nil,
    commits: Int = 0, additions: Int? = nil, deletions: Int? = nil, changedFiles: Int? = nil,
    branch: String? = nil, isForced: Bool = false, magnitude: Double? = nil, receivedMilliseconds: Int
  ) {
    self.deliveryID = deliveryID
    self.kind = kind
    self.action = action
    self.repositoryID = repositoryID
    self.repositoryName = repositoryName
    self.language = language
    self.sender = sender
    self.title = title
    self.url = url
    self.outcome = outcome
    self.commits = commits
    self.additions = additions
    self.deletions = deletions
    self.changedFiles = changedFiles
    self.branch = branch
    self.isForced = isForced
    self.magnitude = magnitude
    self.receivedMilliseconds = receivedMilliseconds
  }
}
