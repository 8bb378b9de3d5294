import WireProtocol

/// Music for what happens in repositories: values to scores, the same on every machine.
package enum Composer {
  /// A piece for an event, 4 to 20 s, which the history then remembers.
  package static func piece(
    for event: RepositoryEvent, parameters: MusicalParameters, history: inout MusicHistory
  ) -> Score {
    let plan = PiecePlan(event, parameters, history)
    history.take(event, parameters, motif: plan.motif)
    var writer = ScoreWriter(
      beat: plan.beat, length: parameters.durationMs * ScoreLimits.samplesPerMillisecond,
      seed: event.deliveryID)
    write(plan, to: &writer)
    var generator = SeededGenerator("sound:\(event.deliveryID)")
    return writer.score(title: event.title, seed: generator.scoreSeed(), effects: effects(plan))
  }

  private static func write(_ plan: PiecePlan, to writer: inout ScoreWriter) {
    let roles = plan.parameters.voices
    let isFull = plan.parameters.intensity >= fullBandIntensity && plan.chords.count > 3
    if roles.contains(.melody) { writeMelody(plan, isFull: isFull, to: &writer) }
    if roles.contains(.harmony) {
      var harmony = HarmonyPart(plan)
      harmony.write(to: &writer, isFull: isFull)
      if plan.parameters.figure == .fanfare { FanfarePart(plan).write(to: &writer) }
    }
    if roles.contains(.bass) {
      var bass = BassPart(plan)
      bass.write(to: &writer)
    }
    if roles.contains(.percussion) {
      var percussion = PercussionPart(plan)
      percussion.write(to: &writer)
    }
    // What is broken stops for a beat, and again before the end.
    if plan.parameters.figure == .stutter, plan.finalTick >= 8 {
      writer.silence(plan.finalTick - 4..<plan.finalTick)
      if plan.finalTick >= 32 { writer.silence(plan.finalTick / 2..<plan.finalTick / 2 + 4) }
    }
  }

  private static func writeMelody(_ plan: PiecePlan, isFull: Bool, to writer: inout ScoreWriter) {
    let part = MelodyPart(plan)
    switch plan.parameters.figure {
    case .remark: part.write(SmallFigures.remark(plan), to: &writer)
    case .glitter: part.write(SmallFigures.glitter(plan), to: &writer)
    case .stutter: part.write(SmallFigures.stuttering(Melody.line(plan), plan), to: &writer)
    case .branch:
      let (upper, lower) = SmallFigures.branches(of: Melody.line(plan), plan)
      part.write(upper, to: &writer, pan: -0.45)
      part.write(lower, to: &writer, pan: 0.45)
    case .song, .fanfare:
      let line = Melody.line(plan)
      part.write(line, to: &writer)
      if isFull { part.writeSecond(below: line, to: &writer) }
    }
  }

  /// From here on instruments are doubled.
  private static let fullBandIntensity = 0.42

  /// The repeats of the delay are three sixteenths apart, so that they fall between the beats.
  private static func effects(_ plan: PiecePlan) -> Score.Effects {
    var effects = Score.Effects()
    effects.reverbSeconds = plan.parameters.effects.reverbSeconds
    effects.delaySamples = plan.beat * 3 / 4
    effects.delayFeedback = 0.3
    return effects
  }
}
