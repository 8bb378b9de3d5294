import WireProtocol

/// The melody as it is played, and what joins in with it.
struct MelodyPart {
  private let plan: PiecePlan
  private let dynamics: Dynamics

  init(_ plan: PiecePlan) {
    self.plan = plan
    dynamics = Dynamics(plan)
  }

  func write(_ line: [MelodyNote], to writer: inout ScoreWriter, pan: Double = 0.1, gain: Double = 1) {
    let voice = addVoice(plan.parameters.instrument, pan: pan, gain: gain, to: &writer)
    for note in line { add(note, voice: voice, softerBy: 0, to: &writer) }
  }

  /// A second voice below, in thirds and sixths, from the middle of the piece on.
  func writeSecond(below line: [MelodyNote], to writer: inout ScoreWriter) {
    let voice = addVoice(plan.parameters.instrument, pan: -0.3, gain: 0.7, to: &writer)
    for note in line where plan.progress(at: note.tick) >= 0.5 {
      var second = note
      let needsChord = plan.isStrong(note.tick) || note.ticks >= 4
      second.step = needsChord ? plan.chord(at: note.tick).below(note.step) : note.step - 2
      add(second, voice: voice, softerBy: 8, to: &writer)
    }
  }

  private func add(_ note: MelodyNote, voice: Int, softerBy: Int, to writer: inout ScoreWriter) {
    let isLast = note.tick == plan.finalTick
    writer.add(
      voice: voice, tick: note.tick, ticks: note.ticks,
      pitch: plan.register.pitch(of: note.step, in: plan.parameters.scale) + 12
        * plan.parameters.instrument.octave,
      velocity: dynamics.melody(note) - softerBy,
      touch: isLast ? 1.1 : plan.parameters.instrument.isSustained ? 0.98 : 0.9)
  }

  private func addVoice(
    _ instrument: Score.Instrument, pan: Double, gain: Double, to writer: inout ScoreWriter
  ) -> Int {
    let parameters = plan.parameters
    return writer.addVoice(
      Score.Voice(
        role: .melody, instrument: instrument, gain: parameters.gains.applied(to: 1.3 * gain, of: .melody),
        pan: pan,
        reverb: parameters.effects.reverb, delay: parameters.effects.delay,
        chorus: parameters.effects.chorus / 2))
  }
}
