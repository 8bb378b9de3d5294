import WireProtocol

/// Chords, held or struck or broken, that move by small steps.
struct HarmonyPart {
  private let plan: PiecePlan
  private let dynamics: Dynamics
  private var generator: SeededGenerator
  /// One for each of the plan's chords, from low to high.
  private let chords: [[Int]]

  init(_ plan: PiecePlan) {
    self.plan = plan
    dynamics = Dynamics(plan)
    generator = SeededGenerator("harmony:\(plan.deliveryID)")
    let lowest = plan.parameters.mood == .dark ? 47 : 51
    var voicing = Voicing(
      scale: plan.parameters.scale, tonic: plan.key.tonic(notAbove: lowest), lowest: lowest)
    chords = plan.chords.map { voicing.pitches(of: $0) }
  }

  /// - Parameter isFull: whether a second instrument joins: a broken chord over one that is held, or the other way.
  mutating func write(to writer: inout ScoreWriter, isFull: Bool) {
    let instrument = plan.parameters.harmonyInstrument
    if instrument.isSustained {
      hold(with: instrument, gain: 0.75, to: &writer)
      if isFull { breakChords(with: instrumentBeside(.pluck), to: &writer) }
    } else {
      strike(with: instrument, to: &writer)
      if isFull { hold(with: instrumentBeside(.pad), gain: 0.6, to: &writer) }
    }
  }

  /// Chords of as long as they last, the last into the silence.
  private func hold(with instrument: Score.Instrument, gain: Double, to writer: inout ScoreWriter) {
    let voice = addVoice(instrument, gain: gain, pan: -0.15, to: &writer)
    for (index, pitches) in chords.enumerated() {
      let tick = index * plan.chordTicks
      for pitch in pitches {
        writer.add(
          voice: voice, tick: tick, ticks: plan.chordTicks, pitch: pitch,
          velocity: dynamics.harmony(at: tick), touch: 1)
      }
    }
  }

  /// In a rhythm that stays the same throughout the piece.
  private mutating func strike(with instrument: Score.Instrument, to writer: inout ScoreWriter) {
    let voice = addVoice(instrument, gain: 1.3, pan: -0.2, to: &writer)
    let rhythm = generator.pick(plan.parameters.emotion.activity < 0.45 ? Self.calm : Self.lively)
    for (index, pitches) in chords.enumerated() {
      let start = index * plan.chordTicks
      let isLast = index == chords.count - 1
      let strokes = isLast ? [0] : rhythm.filter { $0 < plan.chordTicks }
      for (stroke, offset) in strokes.enumerated() {
        let next = stroke + 1 < strokes.count ? strokes[stroke + 1] : plan.chordTicks
        for (height, pitch) in pitches.enumerated() {
          writer.add(
            voice: voice, tick: start + offset, ticks: max(next - offset, 1), pitch: pitch,
            velocity: dynamics.harmony(at: start) + (offset == 0 ? 4 : -4), touch: 0.95,
            // The last is spread from low to high.
            delay: isLast ? height * Self.spreadSamples : 0)
        }
      }
    }
  }

  /// Note by note, in eighths; from the second phrase on, so that the piece grows.
  private mutating func breakChords(with instrument: Score.Instrument, to writer: inout ScoreWriter) {
    let voice = addVoice(instrument, gain: 0.8, pan: 0.35, to: &writer)
    let order = generator.pick(Self.orders)
    let begin = plan.finalTick >= 64 ? plan.finalTick / 3 / 16 * 16 : 0
    for tick in stride(from: begin, to: plan.finalTick, by: 2) {
      let pitches = chords[tick / plan.chordTicks]
      let position = order[tick / 2 % order.count]
      let pitch = pitches[position % pitches.count] + 12 * (position / pitches.count)
      writer.add(
        voice: voice, tick: tick, ticks: 2, pitch: pitch,
        velocity: dynamics.harmony(at: tick) - (tick % 8 == 0 ? 2 : 8))
    }
  }

  private func instrumentBeside(_ usual: Score.Instrument) -> Score.Instrument {
    plan.parameters.instrument == usual ? .electricPiano : usual
  }

  private func addVoice(
    _ instrument: Score.Instrument, gain: Double, pan: Double, to writer: inout ScoreWriter
  ) -> Int {
    let effects = plan.parameters.effects
    return writer.addVoice(
      Score.Voice(
        role: .harmony, instrument: instrument,
        gain: plan.parameters.gains.applied(to: gain, of: .harmony),
        pan: pan, reverb: (effects.reverb + 0.1).clamped(to: 0...1), delay: effects.delay / 2,
        chorus: effects.chorus,
        cutoffHertz: plan.parameters.mood == .dark ? 1_800 : nil))
  }

  /// A fortieth of a second.
  private static let spreadSamples = 1_200
  /// Sixteenths within a bar.
  private static let calm = [[0, 8], [0, 6], [0, 10], [0]]
  private static let lively = [[0, 6, 12], [0, 6, 10], [0, 4, 6, 12], [2, 6, 10, 14], [0, 3, 6, 11]]
  /// Which notes of the chord, from low to high and on into the next octave.
  private static let orders = [
    [0, 1, 2, 3, 2, 1], [0, 2, 1, 2], [0, 1, 2, 3, 4, 3, 2, 1], [2, 1, 0, 1], [0, 2, 3, 2, 4, 2, 3, 2],
  ]
}
