import WireProtocol

/// The lowest voice: roots and fifths, more of them the more goes on, walking into the next chord.
struct BassPart {
  private let plan: PiecePlan
  private let dynamics: Dynamics
  private var generator: SeededGenerator
  private var voice = 0

  /// MIDI: F♯1 to F3. Below it small loudspeakers are silent.
  private static let range = 30...53
  /// Roots are kept here.
  private static let rootRange = 31...45

  private enum Pattern {
    /// The tonic or the root, held.
    case pedal
    case rootsAndFifths
    case eighths
    case walking
  }

  init(_ plan: PiecePlan) {
    self.plan = plan
    dynamics = Dynamics(plan)
    generator = SeededGenerator("bass:\(plan.deliveryID)")
  }

  mutating func write(to writer: inout ScoreWriter) {
    let parameters = plan.parameters
    voice = writer.addVoice(
      Score.Voice(
        role: .bass, instrument: parameters.bassInstrument,
        gain: parameters.gains.applied(to: 1.3, of: .bass),
        reverb: parameters.effects.reverb / 4))
    let pattern = pattern
    var roots: [Int] = []
    for chord in plan.chords { roots.append(root(chord, near: roots.last ?? 38)) }
    for index in plan.chords.indices.dropLast() {
      write(pattern, root: roots[index], next: roots[index + 1], chord: index, to: &writer)
    }
    add(plan.finalTick, max(plan.chordTicks, 8), roots.last!, 4, to: &writer)
  }

  private var pattern: Pattern {
    switch plan.parameters.emotion.activity {
    case _ where plan.parameters.mood == .dark && plan.parameters.emotion.activity < 0.6: .pedal
    case ..<0.35: .pedal
    case ..<0.55: .rootsAndFifths
    case ..<0.72: .walking
    default: .eighths
    }
  }

  private func root(_ chord: Chord, near previous: Int) -> Int {
    let pitch = plan.key.tonic(notAbove: 36) + plan.parameters.scale.semitones[chord.root]
    let octaves = [pitch - 12, pitch, pitch + 12].filter { Self.rootRange.contains($0) }
    return octaves.min { abs($0 - previous) < abs($1 - previous) } ?? pitch
  }

  private mutating func write(
    _ pattern: Pattern, root: Int, next: Int, chord index: Int, to writer: inout ScoreWriter
  ) {
    let start = index * plan.chordTicks
    let chord = plan.chords[index]
    let fifth = root + interval(from: chord.root, to: 4)
    switch pattern {
    case .pedal: add(start, plan.chordTicks, root, 2, to: &writer)
    case .rootsAndFifths where plan.chordTicks >= 8:
      add(start, plan.chordTicks / 2, root, 4, to: &writer)
      add(
        start + plan.chordTicks / 2, plan.chordTicks / 2, generator.chance(70) ? fifth : root, -4, to: &writer
      )
    case .rootsAndFifths: add(start, plan.chordTicks, root, 4, to: &writer)
    case .walking:
      walk(start, root, fifth, next, third: root + interval(from: chord.root, to: 2), to: &writer)
    case .eighths:
      for tick in stride(from: 0, to: plan.chordTicks, by: 2) {
        let pitch =
          tick % 8 == 6 && generator.chance(60)
          ? (root + 12 <= Self.range.upperBound ? root + 12 : fifth) : root
        add(start + tick, 2, pitch, tick % 8 == 0 ? 4 : -6, touch: 0.8, to: &writer)
      }
    }
  }

  /// A note a quarter: root, third, fifth, and the neighbour of the root that comes.
  private mutating func walk(
    _ start: Int, _ root: Int, _ fifth: Int, _ next: Int, third: Int, to writer: inout ScoreWriter
  ) {
    let count = plan.chordTicks / 4
    for beat in 0..<count {
      let pitch =
        switch beat {
        case 0: root
        case count - 1 where next != root: neighbour(of: next, from: root)
        case 1 where generator.chance(50): third
        default: fifth
        }
      add(start + 4 * beat, 4, pitch, beat == 0 ? 4 : -3, touch: 0.85, to: &writer)
    }
  }

  /// The scale's note beside the root that comes, on the side that the bass comes from.
  private func neighbour(of next: Int, from root: Int) -> Int {
    let direction = root < next ? -1 : 1
    let tonic = plan.key.pitchClass
    let isInScale = { (pitch: Int) in
      plan.parameters.scale.semitones.contains(
        (pitch - tonic).quotientAndRemainder(floorDividingBy: 12).remainder)
    }
    var neighbour = next + direction
    while !isInScale(neighbour) { neighbour += direction }
    return neighbour
  }

  /// Semitones from a degree of the scale to one so many steps above it.
  private func interval(from degree: Int, to steps: Int) -> Int {
    plan.parameters.scale.semitones(atStep: degree + steps) - plan.parameters.scale.semitones[degree]
  }

  private mutating func add(
    _ tick: Int, _ ticks: Int, _ pitch: Int, _ accent: Int, touch: Double = 0.95, to writer: inout ScoreWriter
  ) {
    writer.add(
      voice: voice, tick: tick, ticks: ticks, pitch: pitch, velocity: dynamics.bass(at: tick) + accent,
      touch: touch)
  }
}
