/// How loud what is played: MIDI velocities.
struct Dynamics {
  private let plan: PiecePlan

  init(_ plan: PiecePlan) { self.plan = plan }

  /// Before accents: from an aside to everything there is.
  private var level: Double { 72 + 36 * plan.parameters.intensity }

  /// A melody's note, by how much it weighs; phrases swell towards the last chord where things resolve.
  func melody(_ note: MelodyNote) -> Int {
    Int((level - 6 + 16 * note.weight + swell(at: note.tick)).rounded())
  }

  func harmony(at tick: Int) -> Int { Int((level - 20 + swell(at: tick)).rounded()) }
  func bass(at tick: Int) -> Int { Int((level - 8 + swell(at: tick)).rounded()) }

  /// - Parameter accent: as the pattern has it, 0 to 127.
  func percussion(_ accent: Int, at tick: Int) -> Int {
    Int((Double(accent) * (0.7 + 0.3 * plan.parameters.intensity) + swell(at: tick)).rounded())
  }

  private func swell(at tick: Int) -> Double {
    let emotion = plan.parameters.emotion
    return (10 * emotion.resolution - 6 * emotion.tension) * (plan.progress(at: tick) - 0.4)
  }
}
