/// How big an event is: as its source says, or from its commits and lines.
struct EventSize {
  /// 0, nothing, towards 1.
  let value: Double
  /// What of the changed lines was added, 0 to 1; nil where nothing is known of lines.
  let growth: Double?

  init(of event: RepositoryEvent) {
    let commits = Double(max(event.commits, 0))
    let additions = Double(max(event.additions ?? 0, 0))
    let deletions = Double(max(event.deletions ?? 0, 0))
    let lines = additions + deletions
    // Halfway at eight commits, or at 800 lines.
    value = event.magnitude ?? 1 - 8 / (8 + max(commits - 1, 0)) * (800 / (800 + lines))
    growth = event.additions == nil && event.deletions == nil ? nil : (additions + 1) / (lines + 2)
  }

  /// What is left to 1 is made smaller by so much of the size.
  func raising(_ base: Double, by part: Double) -> Double {
    base + (1 - base) * part * value
  }
}
