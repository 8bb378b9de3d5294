/// What an event of a kind is like before its size is looked at: a row of the table.
struct EventCharacter {
  let kind: RepositoryEvent.Kind
  /// Those that the row is for; empty for any.
  let actions: [String]
  let outcome: RepositoryEvent.Outcome?
  let tension: Double
  let resolution: Double
  let activity: Double
  let growth: Double
  let intensity: Double
  let figure: MusicalParameters.Figure
  let cadence: MusicalParameters.Cadence

  /// The first row that an event fits. Every kind's last row is for any action and outcome.
  static func of(_ event: RepositoryEvent) -> EventCharacter {
    table.first { row in
      row.kind == event.kind && (row.actions.isEmpty || row.actions.contains(event.action ?? ""))
        && (row.outcome == nil || row.outcome == event.outcome)
    }!
  }

  private init(
    _ kind: RepositoryEvent.Kind, _ actions: [String], _ outcome: RepositoryEvent.Outcome?,
    _ tension: Double, _ resolution: Double, _ activity: Double, _ growth: Double, _ intensity: Double,
    _ figure: MusicalParameters.Figure, _ cadence: MusicalParameters.Cadence
  ) {
    self.kind = kind
    self.actions = actions
    self.outcome = outcome
    self.tension = tension
    self.resolution = resolution
    self.activity = activity
    self.growth = growth
    self.intensity = intensity
    self.figure = figure
    self.cadence = cadence
  }

  private typealias Row = EventCharacter

  /// Kind, actions, outcome; tension, resolution, activity, growth; intensity; figure, cadence.
  private static let table: [EventCharacter] = [
    Row(.push, [], nil, 0.28, 0.32, 0.45, 0.45, 0.30, .song, .plagal),

    Row(
      .pullRequest, ["opened", "reopened", "ready_for_review"], nil, 0.45, 0.20, 0.50, 0.70, 0.45, .song,
      .half),
    Row(.pullRequest, ["closed"], .success, 0.12, 0.95, 0.65, 0.80, 0.65, .song, .authentic),
    Row(.pullRequest, ["closed"], nil, 0.40, 0.32, 0.25, 0.10, 0.25, .song, .plagal),
    Row(.pullRequest, ["synchronize"], nil, 0.35, 0.30, 0.45, 0.50, 0.20, .song, .half),
    Row(.pullRequest, [], nil, 0.30, 0.35, 0.25, 0.40, 0.10, .remark, .half),

    Row(.pullRequestReview, [], .success, 0.10, 0.80, 0.40, 0.55, 0.35, .song, .authentic),
    Row(.pullRequestReview, [], .failure, 0.65, 0.15, 0.35, 0.35, 0.35, .song, .half),
    Row(.pullRequestReview, [], nil, 0.30, 0.35, 0.20, 0.40, 0.10, .remark, .half),

    Row(.checkRun, [], .success, 0.10, 0.80, 0.40, 0.50, 0.25, .song, .authentic),
    Row(.checkRun, [], .failure, 0.85, 0.05, 0.30, 0.15, 0.40, .song, .deceptive),
    Row(.checkRun, [], .pending, 0.45, 0.20, 0.35, 0.40, 0.10, .remark, .half),
    Row(.checkRun, [], nil, 0.25, 0.40, 0.20, 0.35, 0.08, .remark, .plagal),

    Row(.workflowRun, [], .success, 0.10, 0.85, 0.50, 0.55, 0.35, .song, .authentic),
    Row(.workflowRun, [], .failure, 0.90, 0.05, 0.35, 0.15, 0.50, .song, .deceptive),
    Row(.workflowRun, [], .pending, 0.45, 0.20, 0.45, 0.45, 0.15, .remark, .half),
    Row(.workflowRun, [], nil, 0.25, 0.40, 0.20, 0.35, 0.10, .remark, .plagal),

    Row(.deploymentStatus, [], .success, 0.10, 0.95, 0.70, 0.75, 0.60, .song, .authentic),
    Row(.deploymentStatus, [], .failure, 0.95, 0.05, 0.40, 0.10, 0.60, .song, .deceptive),
    Row(.deploymentStatus, [], .pending, 0.45, 0.20, 0.55, 0.60, 0.25, .song, .half),
    Row(.deploymentStatus, [], nil, 0.25, 0.45, 0.30, 0.40, 0.15, .remark, .plagal),

    Row(.issues, ["opened", "reopened"], nil, 0.48, 0.20, 0.35, 0.45, 0.25, .song, .half),
    Row(.issues, ["closed"], .neutral, 0.30, 0.40, 0.20, 0.25, 0.15, .song, .plagal),
    Row(.issues, ["closed"], nil, 0.12, 0.80, 0.40, 0.45, 0.30, .song, .authentic),
    Row(.issues, [], nil, 0.25, 0.40, 0.20, 0.40, 0.06, .remark, .plagal),

    Row(.issueComment, ["deleted"], nil, 0.40, 0.25, 0.10, 0.10, 0.02, .remark, .plagal),
    Row(.issueComment, [], nil, 0.22, 0.42, 0.15, 0.45, 0.05, .remark, .plagal),

    Row(
      .release, ["published", "released", "prereleased"], nil, 0.18, 0.90, 0.95, 0.95, 0.90, .fanfare,
      .authentic),
    Row(.release, ["deleted", "unpublished"], nil, 0.60, 0.20, 0.20, 0.05, 0.25, .song, .deceptive),
    Row(.release, [], nil, 0.20, 0.50, 0.30, 0.60, 0.10, .remark, .plagal),

    Row(.star, ["deleted"], nil, 0.35, 0.25, 0.10, 0.05, 0.04, .remark, .plagal),
    Row(.star, [], nil, 0.05, 0.70, 0.25, 0.80, 0.10, .glitter, .plagal),

    Row(.fork, [], nil, 0.15, 0.60, 0.35, 0.85, 0.38, .branch, .plagal),

    Row(.event, [], .success, 0.10, 0.80, 0.45, 0.55, 0.25, .song, .authentic),
    Row(.event, [], .failure, 0.85, 0.05, 0.35, 0.15, 0.35, .song, .deceptive),
    Row(.event, [], .pending, 0.45, 0.20, 0.35, 0.40, 0.10, .remark, .half),
    Row(.event, [], nil, 0.20, 0.50, 0.30, 0.50, 0.15, .remark, .plagal),
  ]
}
