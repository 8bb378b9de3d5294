import WireProtocol

/// What an event is in a replay: a note or a few. Those of the melody go through the repository's motif, note by
/// note.
struct ReplayGestures {
  private let plan: ReplayPlan
  private let register: Register
  private let melody: Int
  private let bells: Int
  private let remarks: Int
  private let brass: Int
  private var motifPosition = 0

  init(_ plan: ReplayPlan, gains: MusicalParameters.Gains, to writer: inout ScoreWriter) {
    self.plan = plan
    register = Register(plan.key, around: 67)
    func add(_ instrument: Score.Instrument, _ gain: Double, _ pan: Double) -> Int {
      writer.addVoice(
        Score.Voice(
          role: .melody, instrument: instrument, gain: gains.applied(to: 1.5 * gain, of: .melody), pan: pan,
          reverb: 0.3,
          delay: 0.15))
    }
    melody = add(plan.instrument, 1, 0.1)
    bells = add(.bell, 0.6, 0.45)
    remarks = add(.marimba, 0.8, -0.45)
    brass = add(.brass, 0.7, -0.15)
  }

  mutating func write(
    _ event: (RepositoryEvent, MusicalParameters), at tick: Int, to writer: inout ScoreWriter
  ) {
    let parameters = event.1
    let velocity = Int(60 + 36 * parameters.intensity)
    let chord = plan.chord(at: tick)
    let step = nextStep(chord)
    func add(_ voice: Int, _ offset: Int, _ ticks: Int, _ step: Int, octave: Int = 0, _ accent: Int = 0) {
      writer.add(
        voice: voice, tick: tick + offset, ticks: ticks,
        pitch: register.pitch(of: step, in: plan.scale) + 12 * octave, velocity: velocity + accent)
    }
    switch (parameters.figure, parameters.cadence) {
    case (.fanfare, _):
      for degree in chord.degrees { add(brass, 0, 6, degree, 12) }
      add(bells, 0, 8, chord.nearest(to: step + 7), octave: 1)
    case (.glitter, _):
      for index in 0..<3 {
        add(bells, index, 1, chord.degrees[index % chord.degrees.count], octave: 1, 4 * index - 6)
      }
    case (.branch, _):
      add(melody, 0, 2, step)
      add(melody, 0, 2, chord.below(step), -6)
    case (.stutter, _):
      for index in 0..<3 { add(melody, index, 1, step, octave: -1, -5 * index) }
    case (.remark, _):
      add(remarks, 0, 1, step)
    case (.song, .half):
      // A question: a step up to the chord's note.
      add(melody, 0, 1, step - 1, -8)
      add(melody, 1, 2, step)
    case (.song, .authentic):
      // An answer: the chord's note, and the bells say so too.
      add(melody, 0, 3, step)
      add(bells, 0, 4, step, octave: 1, -10)
    case (.song, .plagal):
      add(melody, 0, 2, step)
      if event.0.commits > 3 { add(melody, 1, 1, chord.nearest(to: step + 2), -10) }
    case (.song, .deceptive):
      // Low, and rubbing against its neighbour.
      add(brass, 0, 5, chord.root, octave: -1, 4)
      add(remarks, 0, 1, chord.root + 1, octave: -1, -12)
    }
  }

  /// The motif's next note, brought into the chord.
  private mutating func nextStep(_ chord: Chord) -> Int {
    let note = plan.motif.notes[motifPosition % plan.motif.notes.count]
    // Every other time through it lies a third higher.
    let lift = motifPosition / plan.motif.notes.count % 2 * 2
    motifPosition += 1
    return chord.nearest(to: register.home + note.step + lift)
  }
}
