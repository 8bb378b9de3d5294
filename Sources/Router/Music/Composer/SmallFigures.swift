/// Melodies of pieces that are no songs, over the same plan.
enum SmallFigures {
  /// Two or three notes of the motif that come to rest, or ask.
  static func remark(_ plan: PiecePlan) -> [MelodyNote] {
    let line = Melody.line(plan)
    guard let last = line.last else { return line }
    // What is nearest to the end: it leads there by step.
    let lead = line.dropLast().prefix(plan.finalTick > 4 ? 2 : 1)
    var tick = plan.finalTick
    var notes = [last]
    for note in lead.reversed() where tick >= 2 {
      tick -= min(max(note.ticks, 2), tick)
      notes.insert(
        MelodyNote(tick: tick, ticks: notes[0].tick - tick, step: note.step, weight: note.weight), at: 0)
    }
    return notes
  }

  /// Bells that run up through the chord and rest on the motif's first notes.
  static func glitter(_ plan: PiecePlan) -> [MelodyNote] {
    var generator = SeededGenerator("glitter:\(plan.deliveryID)")
    // Without the scale's halftones nothing clashes while it all rings on.
    let steps = [0, 1, 2, 4, 5, 7, 8, 9, 11]
    let run = max(min(plan.finalTick, generator.within(5...8)), 2)
    let first = generator.below(steps.count - run + 1)
    var notes = (0..<run).map { index in
      MelodyNote(
        tick: plan.finalTick - run + index, ticks: 1, step: steps[first + index],
        weight: Double(index) / Double(run))
    }
    var tick = plan.finalTick
    let chord = plan.chords.last!
    for (index, note) in plan.motif.head.notes.enumerated() {
      let step = chord.nearest(to: 7 + note.step)
      notes.append(
        MelodyNote(tick: tick, ticks: note.eighths * 2, step: step, weight: index == 0 ? 0.9 : 0.5))
      tick += note.eighths * 2
    }
    return notes
  }

  /// The second voice of a melody that branches: the same rhythm, the other way up, below.
  static func mirror(of line: [MelodyNote], _ plan: PiecePlan) -> [MelodyNote] {
    guard let axis = line.first?.step else { return [] }
    let branching = line.filter { plan.progress(at: $0.tick) >= 0.4 }
    return branching.map { note in
      var mirrored = note
      let step = (2 * axis - note.step - 2).clamped(to: -7...note.step - 2)
      let needsChord = plan.isStrong(note.tick) || note.ticks >= 4
      mirrored.step = needsChord ? plan.chord(at: note.tick).nearest(to: step) : step
      return mirrored
    }
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
