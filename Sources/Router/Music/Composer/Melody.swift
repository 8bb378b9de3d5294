/// Writes a melody: the motif, stated, moved, turned over, broken off and led home, over a plan's chords.
struct Melody {
  private let plan: PiecePlan
  private var generator: SeededGenerator
  private(set) var notes: [MelodyNote] = []

  /// Steps above the melody's tonic that it stays within.
  private let range: ClosedRange<Int>
  /// More than this from note to note is brought nearer by an octave.
  private static let widestLeap = 6

  /// What is made of the motif in one bar.
  private enum Cell {
    case statement, sequence, inversion, fragments, breath, pickup, approach
  }

  static func line(_ plan: PiecePlan) -> [MelodyNote] {
    var melody = Melody(plan)
    melody.write()
    return melody.notes
  }

  private init(_ plan: PiecePlan) {
    self.plan = plan
    generator = SeededGenerator("melody:\(plan.deliveryID)")
    range = plan.register.home - 4...plan.register.home + 11
  }

  private mutating func write() {
    let cells = cells()
    for (index, cell) in cells.enumerated() {
      let start = index * Self.cellTicks
      write(cell, start..<min(start + Self.cellTicks, plan.finalTick))
    }
    end()
    for index in notes.indices { breakOff(&notes[index]) }
  }

  /// A bar of four quarters.
  private static let cellTicks = 16

  // MARK: Form

  /// One for each bar before the last chord.
  private func cells() -> [Cell] {
    let count = (plan.finalTick + Self.cellTicks - 1) / Self.cellTicks
    let turned: Cell = plan.parameters.mood == .dark ? .inversion : .sequence
    switch count {
    case ...1: return [.statement]
    case 2: return [.statement, .approach]
    case 3: return [.statement, turned, .approach]
    case 4: return [.statement, turned, .fragments, .approach]
    default:
      // The band begins, the melody comes in with an upbeat; then phrases of four bars, each of which breathes.
      let introduction: [Cell] = count >= 7 ? [.pickup] : []
      let phrases: [Cell] = [
        .statement, turned, .statement, .breath, .statement, .inversion, .fragments, .breath,
      ]
      let middle = (0..<count - introduction.count - 2).map { phrases[$0 % phrases.count] }
      return introduction + middle + [.fragments, .approach]
    }
  }

  private mutating func write(_ cell: Cell, _ ticks: Range<Int>) {
    switch cell {
    case .statement: state(plan.motif, ticks)
    case .sequence: state(plan.motif, ticks, higherBy: generator.within(1...2))
    case .inversion: state(plan.motif.inverted, ticks)
    case .fragments:
      let middle = ticks.lowerBound + ticks.count / 2
      state(plan.motif.head, ticks.lowerBound..<middle, isHeld: false)
      state(plan.motif.head, middle..<ticks.upperBound, higherBy: generator.pick([-1, 1, 2]), isHeld: false)
    case .breath:
      state(Motif(notes: Array(plan.motif.notes.prefix(1))), ticks)
      if generator.chance(50) { pickup(before: ticks.upperBound) }
    case .pickup: pickup(before: ticks.upperBound)
    case .approach: approach(ticks)
    }
  }

  // MARK: Cells

  /// The motif on the chord of its place. Where there is no room for its written lengths they are halved.
  private mutating func state(
    _ motif: Motif, _ ticks: Range<Int>, higherBy steps: Int = 0, isHeld: Bool = true
  ) {
    let unit = motif.eighths * 2 <= ticks.count ? 2 : 1
    let anchor = anchor(for: motif, at: ticks.lowerBound, higherBy: steps)
    var tick = ticks.lowerBound
    var previous = anchor
    for (index, note) in motif.notes.enumerated() where tick < ticks.upperBound {
      let isLast = index == motif.notes.count - 1
      let room = ticks.upperBound - tick
      let length =
        isLast && isHeld ? max(min(note.eighths * unit, room), room - 4) : min(note.eighths * unit, room)
      // A note that moves in the motif does so here too, also where the chord would hold it.
      add(tick, length, anchor + note.step, moving: (anchor + note.step - previous).signum())
      previous = anchor + note.step
      tick += note.eighths * unit
    }
  }

  /// Two or three steps up to the next bar.
  private mutating func pickup(before tick: Int) {
    let count = generator.within(2...3)
    let target = anchor(for: plan.motif, at: tick, higherBy: 0)
    for index in 0..<count where tick - 2 * (count - index) >= 0 {
      add(tick - 2 * (count - index), 2, target - (count - index))
    }
  }

  /// The motif, moved so that its last note leads by step into the final one.
  private mutating func approach(_ ticks: Range<Int>) {
    let leading = final + (comesFromAbove ? 1 : -1)
    let motif = plan.motif.eighths * 2 <= ticks.count ? plan.motif : plan.motif.head
    var tick = ticks.lowerBound
    let shift = (leading - motif.notes.last!.step).clamped(
      to: range.lowerBound - motif.lowest...range.upperBound - motif.highest)
    for note in motif.notes.dropLast() {
      add(tick, note.eighths * 2, shift + note.step)
      tick += note.eighths * 2
    }
    guard tick < ticks.upperBound else { return }
    add(tick, ticks.upperBound - tick, leading)
  }

  private mutating func end() {
    let ticks = max(plan.chordTicks, 4)
    if notes.isEmpty { add(0, plan.finalTick, contour(at: 0)) }
    append(MelodyNote(tick: plan.finalTick, ticks: ticks, step: near(final), weight: 0.8))
  }

  // MARK: Pitch

  /// Where the piece ends, by its cadence.
  private var final: Int {
    let chord = plan.chords.last!
    let degree =
      switch plan.parameters.cadence {
      case .authentic: chord.degrees[0]
      case .plagal: chord.degrees[plan.parameters.emotion.growth > 0.5 ? 2 : 0]
      case .half: chord.degrees[plan.parameters.emotion.tension > 0.5 ? 1 : 2]
      case .deceptive: chord.degrees[1]
      }
    // In the octave that the contour has come to.
    let target = contour(at: plan.finalTick)
    let below = target - (target - degree).quotientAndRemainder(floorDividingBy: 7).remainder
    return target - below <= 3 || below + 7 > range.upperBound
      ? max(below, range.lowerBound) : below + 7
  }

  private var comesFromAbove: Bool {
    plan.parameters.cadence != .authentic || plan.parameters.emotion.growth < 0.6
  }

  /// Steps above the tonic around which the melody moves: an arch, or up as things grow, or down where it is tense.
  private func contour(at tick: Int) -> Int {
    let x = plan.progress(at: tick)
    let height =
      if plan.parameters.emotion.tension >= 0.5 {
        4 - 6 * x
      } else if plan.parameters.cadence == .half || plan.parameters.emotion.growth >= 0.7 {
        7 * x
      } else {
        1 + 20 * x * (1 - x)
      }
    return plan.register.home + Int(height.rounded())
  }

  /// The chord's note on which a motif begins: near to the contour and to what was sung before, and such that the
  /// motif stays within the range.
  private func anchor(for motif: Motif, at tick: Int, higherBy steps: Int) -> Int {
    let target = contour(at: tick) + steps
    let chord = plan.chord(at: tick)
    let allowed = range.filter { step in
      chord.contains(step: step) && range.contains(step + motif.lowest)
        && range.contains(step + motif.highest)
    }
    func cost(_ step: Int) -> Int {
      let leap = notes.last.map { max(abs(step - $0.step) - 3, 0) } ?? 0
      return abs(step - target) + 4 * leap
    }
    return allowed.min { cost($0) < cost($1) } ?? chord.nearest(to: target)
  }

  private mutating func add(_ tick: Int, _ ticks: Int, _ step: Int, moving direction: Int = 0) {
    let chord = plan.chord(at: tick)
    let needsChord = plan.isStrong(tick) || ticks >= 4
    var fitted = needsChord ? chord.nearest(to: step) : step
    if needsChord, direction != 0, fitted == notes.last?.step {
      repeat { fitted += direction } while !chord.contains(step: fitted)
    }
    let summit = Double(fitted - range.lowerBound) / Double(range.count)
    append(
      MelodyNote(
        tick: tick, ticks: ticks, step: near(fitted),
        weight: plan.isStrong(tick) ? 0.4 + 0.6 * summit : 0.6 * summit))
  }

  private mutating func append(_ note: MelodyNote) {
    // A melody has one note at a time.
    while let last = notes.last, last.tick >= note.tick { notes.removeLast() }
    if let last = notes.last { notes[notes.count - 1].ticks = min(last.ticks, note.tick - last.tick) }
    notes.append(note)
  }

  /// A note does not hang over into a chord that it is foreign to.
  private func breakOff(_ note: inout MelodyNote) {
    let next = (note.tick / plan.chordTicks + 1) * plan.chordTicks
    guard note.tick + note.ticks > next, note.tick < plan.finalTick else { return }
    if !plan.chord(at: next).contains(step: note.step) { note.ticks = next - note.tick }
  }

  /// The same note of the scale in the octave in which it is no great leap.
  private func near(_ step: Int) -> Int {
    guard let last = notes.last?.step else { return step }
    var step = step
    while step - last > Self.widestLeap { step -= 7 }
    while last - step > Self.widestLeap { step += 7 }
    return step
  }
}
