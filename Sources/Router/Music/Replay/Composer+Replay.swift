import WireProtocol

extension Composer {
  /// A time of a repository's events, a week say, in a minute: one piece of 28 bars, in which every event is a note
  /// or a few at its place in time.
  ///
  /// - Parameters:
  ///   - events: by time.
  ///   - from: milliseconds since 1970.
  ///   - until: milliseconds since 1970, after `from`.
  /// - Returns: the music, and for each event the sample where it sounds; or would sound, where there are too many at
  ///   once and it is none of the notable ones.
  package static func replay(
    events: [(RepositoryEvent, MusicalParameters)], from: Int, until: Int, name: String, mapping: MusicMapping
  ) -> (score: Score, places: [Int]) {
    let plan = ReplayPlan(events, from: from, until: until, mapping)
    var writer = ScoreWriter(beat: ReplayPlan.beat, length: ReplayPlan.length, seed: "replay:\(plan.name)")
    var gestures = ReplayGestures(plan, gains: mapping.gains, to: &writer)
    for index in plan.chosen { gestures.write(events[index], at: plan.ticks[index], to: &writer) }
    ReplayBand(plan, gains: mapping.gains).write(to: &writer)
    var generator = SeededGenerator("replay:\(plan.name)")
    var effects = Score.Effects()
    effects.delaySamples = ReplayPlan.beat * 3 / 4
    effects.delayFeedback = 0.25
    return (
      writer.score(title: name, seed: generator.scoreSeed(), effects: effects),
      plan.ticks.map { $0 * ReplayPlan.beat / ScoreWriter.ticksPerBeat }
    )
  }
}
