/// Melodies of pieces that are no songs, over the same plan.
enum SmallFigures {
  /// The motif's first one or two notes, and one that comes to rest, or asks.
  static func remark(_ plan: PiecePlan) -> [MelodyNote] {
    let line = Melody.line(plan)
    guard let first = line.first, let last = line.last else { return line }
    let second = line.dropFirst().first { $0.tick < plan.finalTick && $0.step != first.step }
    // Where the motif has a long first note the second comes late.
    let middle = plan.motif.notes[0].eighths > 1 ? plan.finalTick * 3 / 4 : plan.finalTick / 2
    var notes = [MelodyNote(tick: 0, ticks: plan.finalTick, step: first.step, weight: first.weight)]
    if let second, plan.finalTick >= 4 {
      notes[0].ticks = middle
      let step = plan.isStrong(middle) ? plan.chord(at: middle).nearest(to: second.step) : second.step
      notes.append(MelodyNote(tick: middle, ticks: plan.finalTick - middle, step: step, weight: 0.4))
    }
    return notes + [last]
  }

  /// Bells that run up through the chord, twice where there is time, and rest on the motif's first notes.
  static func glitter(_ plan: PiecePlan) -> [MelodyNote] {
    var generator = SeededGenerator("glitter:\(plan.deliveryID)")
    let run = generator.within(5...7)
    // From the tonic that is nearest to the melody's home.
    let octave = plan.register.home > 3 ? 7 : 0
    var notes: [MelodyNote] = []
    let begins = plan.finalTick >= 2 * run + 2 ? [0, plan.finalTick - run] : [max(plan.finalTick - run, 0)]
    for (index, begin) in begins.enumerated() {
      let first = generator.below(2) + index
      for offset in 0..<min(run, plan.finalTick - begin) {
        let step = octave + Self.glittering[first + offset]
        let weight = Double(offset) / Double(run) - (index + 1 < begins.count ? 0.3 : 0)
        notes.append(MelodyNote(tick: begin + offset, ticks: 1, step: step, weight: weight))
      }
    }
    var tick = plan.finalTick
    for (index, note) in plan.motif.head.notes.enumerated() {
      let step = plan.chords.last!.nearest(to: octave + 7 + note.step)
      notes.append(
        MelodyNote(tick: tick, ticks: note.eighths * 2, step: step, weight: index == 0 ? 0.9 : 0.5))
      tick += note.eighths * 2
    }
    return notes
  }

  /// Steps without the scale's halftones: nothing clashes while it all rings on.
  private static let glittering = [0, 1, 2, 4, 5, 7, 8, 9, 11, 12]

  /// A melody that becomes two: from its second part on, one voice goes up wherever the other goes down.
  static func branches(of line: [MelodyNote], _ plan: PiecePlan) -> (upper: [MelodyNote], lower: [MelodyNote])
  {
    let trunk = line.filter { $0.tick < branching(plan) }
    let rest = line.filter { $0.tick >= branching(plan) }
    guard let axis = rest.first?.step else { return (line, []) }
    func branch(_ direction: Int) -> [MelodyNote] {
      rest.map { note in
        var branch = note
        branch.step = axis + direction * abs(note.step - axis)
        let needsChord = plan.isStrong(note.tick) || note.ticks >= 4
        if needsChord { branch.step = plan.chord(at: note.tick).nearest(to: branch.step) }
        return branch
      }
    }
    return (trunk + branch(1), branch(-1))
  }

  /// The bar's line nearest to the middle; at once where there is one bar only.
  private static func branching(_ plan: PiecePlan) -> Int {
    plan.finalTick >= 24 ? max(plan.finalTick / 2 / 16, 1) * 16 : plan.finalTick / 2
  }

  /// The same melody, caught: notes are hammered again and again, others are missing.
  static func stuttering(_ line: [MelodyNote], _ plan: PiecePlan) -> [MelodyNote] {
    var generator = SeededGenerator("stutter:\(plan.deliveryID)")
    return line.flatMap { note -> [MelodyNote] in
      guard note.tick < plan.finalTick, note.tick > 0 else { return [note] }
      if generator.chance(18) { return [] }
      guard note.ticks >= 2, generator.chance(55) else { return [note] }
      return (0..<note.ticks).filter { $0 % 4 != 3 }.map { repeated in
        MelodyNote(
          tick: note.tick + repeated, ticks: 1, step: note.step,
          weight: note.weight * (1 - 0.15 * Double(min(repeated, 5))))
      }
    }
  }
}
