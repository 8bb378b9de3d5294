import WireProtocol

/// Drums: a pattern by how much goes on, with a fill before the end.
struct PercussionPart {
  private let plan: PiecePlan
  private let dynamics: Dynamics
  private var generator: SeededGenerator
  private var voice = 0

  init(_ plan: PiecePlan) {
    self.plan = plan
    dynamics = Dynamics(plan)
    generator = SeededGenerator("percussion:\(plan.deliveryID)")
  }

  mutating func write(to writer: inout ScoreWriter) {
    voice = writer.addVoice(
      Score.Voice(
        role: .percussion, instrument: .drums,
        gain: plan.parameters.gains.applied(to: 1, of: .percussion),
        reverb: plan.parameters.effects.reverb / 3))
    let pattern = pattern
    // The drums come in when the melody was heard once.
    let begin = plan.finalTick >= 64 ? 16 : 0
    let fill = plan.finalTick >= 32 ? plan.finalTick - 8 : plan.finalTick
    for tick in begin..<max(fill, begin) {
      for stroke in pattern where stroke.ticks.contains(tick % 16) {
        add(tick, stroke.key, stroke.accent - (tick % 4 == 0 ? 0 : 14), to: &writer)
      }
    }
    writeFill(from: fill, to: &writer)
    guard plan.parameters.cadence.isResolved else { return }
    add(plan.finalTick, .bassDrum, 96, to: &writer)
    if plan.parameters.intensity >= 0.45 { add(plan.finalTick, .crash, 78, to: &writer) }
  }

  /// Pitches of the engine's drums: General MIDI's.
  private enum Key: Int {
    case bassDrum = 36
    case snare = 38
    case clap = 39
    case closedHat = 42
    case openHat = 46
    case crash = 49
    case shaker = 70
    case claves = 75
  }

  /// One drum's places in a bar of sixteenths.
  private struct Stroke {
    let key: Key
    let accent: Int
    let ticks: [Int]

    init(_ key: Key, _ accent: Int, _ ticks: [Int]) {
      self.key = key
      self.accent = accent
      self.ticks = ticks
    }
  }

  private var pattern: [Stroke] {
    let emotion = plan.parameters.emotion
    if plan.parameters.mood == .dark { return emotion.activity < 0.6 ? Self.heartbeat : Self.broken }
    switch emotion.activity {
    case ..<0.5: return Self.light
    case ..<0.65: return Self.steady
    case ..<0.8: return Self.driving
    // Sixteenths would be a blur where the beat is fast.
    default: return plan.parameters.tempo < 125 ? Self.full : Self.driving
    }
  }

  private static let light = [
    Stroke(.bassDrum, 70, [0]), Stroke(.shaker, 52, [0, 2, 4, 6, 8, 10, 12, 14]),
    Stroke(.claves, 40, [6, 12]),
  ]
  private static let steady = [
    Stroke(.bassDrum, 88, [0, 8, 10]), Stroke(.clap, 66, [4, 12]),
    Stroke(.closedHat, 56, [0, 2, 4, 6, 8, 10, 12, 14]),
  ]
  private static let driving = [
    Stroke(.bassDrum, 98, [0, 6, 8]), Stroke(.snare, 84, [4, 12]),
    Stroke(.closedHat, 60, [0, 2, 4, 6, 8, 10, 12]), Stroke(.openHat, 48, [14]),
  ]
  private static let full = [
    Stroke(.bassDrum, 102, [0, 3, 8, 10]), Stroke(.snare, 88, [4, 12]), Stroke(.clap, 60, [12]),
    Stroke(.closedHat, 58, Array(0..<14)), Stroke(.openHat, 50, [14]), Stroke(.shaker, 44, [2, 6, 10, 14]),
  ]
  private static let heartbeat = [Stroke(.bassDrum, 92, [0, 3]), Stroke(.shaker, 34, [4, 12])]
  private static let broken = [
    Stroke(.bassDrum, 96, [0, 3, 7, 10]), Stroke(.snare, 70, [5, 12]),
    Stroke(.closedHat, 46, [0, 3, 6, 9, 12, 15]),
  ]

  /// Half a bar that leads over to the last chord.
  private mutating func writeFill(from fill: Int, to writer: inout ScoreWriter) {
    guard plan.parameters.mood != .dark, plan.parameters.emotion.activity >= 0.5 else { return }
    let step = plan.parameters.tempo < 110 ? 1 : 2
    for tick in stride(from: fill, to: plan.finalTick, by: step) {
      let rise = 46 + 5 * (tick - fill)
      if tick == fill || generator.chance(75) { add(tick, .snare, rise, to: &writer) }
      if (tick - fill) % 4 == 0 { add(tick, .bassDrum, 84, to: &writer) }
    }
  }

  private mutating func add(_ tick: Int, _ key: Key, _ accent: Int, to writer: inout ScoreWriter) {
    writer.add(
      voice: voice, tick: tick, ticks: 1, pitch: key.rawValue,
      velocity: dynamics.percussion(accent, at: tick), touch: 1)
  }
}
