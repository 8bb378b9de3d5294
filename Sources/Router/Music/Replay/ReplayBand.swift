import WireProtocol

/// What carries a replay's events: chords throughout, and a bass and drums that grow with how much happened.
struct ReplayBand {
  private let plan: ReplayPlan
  private let gains: MusicalParameters.Gains

  init(_ plan: ReplayPlan, gains: MusicalParameters.Gains) {
    self.plan = plan
    self.gains = gains
  }

  func write(to writer: inout ScoreWriter) {
    writeChords(to: &writer)
    writeBass(to: &writer)
    writeDrums(to: &writer)
  }

  private func writeChords(to writer: inout ScoreWriter) {
    let voice = writer.addVoice(
      Score.Voice(
        role: .harmony, instrument: .pad, gain: gains.applied(to: 0.9, of: .harmony), reverb: 0.4,
        chorus: 0.3,
        cutoffHertz: 2_200))
    let lowest = 52
    var voicing = Voicing(scale: plan.scale, tonic: plan.key.tonic(notAbove: lowest), lowest: lowest)
    for (bar, chord) in plan.chords.enumerated() {
      for pitch in voicing.pitches(of: chord) {
        writer.add(
          voice: voice, tick: bar * ReplayPlan.barTicks, ticks: ReplayPlan.barTicks, pitch: pitch,
          velocity: 54 + busyness(bar) * 5, touch: 1)
      }
    }
  }

  private func writeBass(to writer: inout ScoreWriter) {
    let voice = writer.addVoice(
      Score.Voice(
        role: .bass, instrument: plan.bassInstrument, gain: gains.applied(to: 1.2, of: .bass), reverb: 0.08))
    let tonic = plan.key.tonic(notAbove: 40)
    for (bar, chord) in plan.chords.enumerated() {
      let root = tonic + plan.scale.semitones[chord.root]
      // Down from the upper half, so that the line stays low.
      let pitch = root > 44 ? root - 12 : root
      let strokes = bar == plan.chords.count - 1 ? [(0, 16)] : Self.bass[busyness(bar)]
      for (offset, ticks) in strokes {
        writer.add(
          voice: voice, tick: bar * ReplayPlan.barTicks + offset, ticks: ticks, pitch: pitch,
          velocity: 70 + (offset == 0 ? 8 : 0))
      }
    }
  }

  private func writeDrums(to writer: inout ScoreWriter) {
    let voice = writer.addVoice(
      Score.Voice(
        role: .percussion, instrument: .drums, gain: gains.applied(to: 0.9, of: .percussion), reverb: 0.12))
    for bar in 0..<plan.chords.count - 1 {
      for (key, velocity, ticks) in Self.drums[busyness(bar)] {
        for tick in ticks {
          writer.add(
            voice: voice, tick: bar * ReplayPlan.barTicks + tick, ticks: 1, pitch: key, velocity: velocity,
            touch: 1)
        }
      }
    }
  }

  /// How much happened in a bar, beside the busiest: 0, nothing, to 3.
  private func busyness(_ bar: Int) -> Int {
    let count = plan.density[bar]
    let busiest = plan.density.max() ?? 0
    guard count > 0 else { return 0 }
    return 1 + min(3 * count / (busiest + 1), count / 3)
  }

  /// Sixteenths within the bar, and how long, by how much happened.
  private static let bass: [[(Int, Int)]] = [
    [], [(0, 12)], [(0, 6), (8, 4), (14, 2)], [(0, 3), (4, 2), (6, 2), (8, 3), (12, 2), (14, 2)],
  ]

  /// The key, its velocity and its sixteenths within the bar, by how much happened.
  private static let drums: [[(Int, Int, [Int])]] = [
    [], [(70, 36, [4, 12])], [(36, 70, [0, 10]), (39, 48, [12]), (70, 38, [2, 6, 10, 14])],
    [(36, 84, [0, 8, 10]), (39, 60, [4, 12]), (42, 46, [0, 2, 4, 6, 8, 10, 12, 14])],
  ]
}
