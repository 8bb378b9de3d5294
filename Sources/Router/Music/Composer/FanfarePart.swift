import WireProtocol

/// What a fanfare has beside the song's voices: a call before it, with a roll of the drums, and brass in chords.
struct FanfarePart {
  private let plan: PiecePlan
  private let dynamics: Dynamics

  init(_ plan: PiecePlan) {
    self.plan = plan
    dynamics = Dynamics(plan)
  }

  /// Brass that strikes each chord and rests, and holds the last one.
  func write(to writer: inout ScoreWriter) {
    let parameters = plan.parameters
    let voice = writer.addVoice(
      Score.Voice(
        role: .harmony, instrument: .brass,
        gain: parameters.gains.applied(to: 0.6, of: .harmony),
        pan: -0.35, reverb: parameters.effects.reverb))
    let lowest = 55
    var voicing = Voicing(scale: parameters.scale, tonic: plan.key.tonic(notAbove: lowest), lowest: lowest)
    for (index, chord) in plan.chords.enumerated() {
      let start = index * plan.chordTicks
      let pitches = voicing.pitches(of: Chord(chord.root))
      let isLast = index == plan.chords.count - 1
      for (offset, ticks) in isLast ? [(0, max(plan.chordTicks, 8))] : Self.strokes
      where offset < plan.chordTicks {
        for pitch in pitches {
          writer.add(
            voice: voice, tick: start + offset, ticks: ticks, pitch: pitch,
            velocity: dynamics.harmony(at: start) + (offset == 0 ? 10 : 0), touch: isLast ? 1 : 0.7)
        }
      }
    }
  }

  /// Sixteenths within a chord, and how long: long, short, short.
  private static let strokes = [(0, 4), (6, 1), (7, 1), (8, 4)]
}
