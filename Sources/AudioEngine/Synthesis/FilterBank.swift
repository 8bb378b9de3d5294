/// The low-passes and envelopes of up to four stereo notes, computed at once: each sample waits for the one before
/// it, so that a single filter leaves the processor idle.
struct FilterBank: ~Copyable {
  static let noteCount = 4
  /// Left and right of each note.
  private static let laneCount = 2 * noteCount

  /// What a lane has, `laneCount` values each.
  private enum Row: Int, CaseIterable {
    case own, crossed, input, first, second, gain, slope
  }

  private let rows = SampleBuffer(count: laneCount * Row.allCases.count)
  /// All lanes' values, sample by sample.
  private let samples = SampleBuffer(count: laneCount * ControlBlock.sampleCount)
  /// The sum of the first and third note, and that of the second and fourth, sample by sample.
  private let halves = SampleBuffer(count: laneCount / 2 * ControlBlock.sampleCount)

  /// Makes all places silent.
  func clear() {
    rows.base.update(repeating: 0, count: rows.count)
    // Behind a span's end anything may lie, and nought times that need not be nought.
    samples.base.update(repeating: 0, count: samples.count)
  }

  /// Takes a note's samples and what they go through.
  func take(_ place: Int, _ note: NoteSamples, _ filter: StateVariableFilter, gain: LinearRamp, count: Int) {
    set(.own, place, SIMD2(repeating: filter.own))
    set(.crossed, place, SIMD2(repeating: filter.crossed))
    set(.input, place, SIMD2(repeating: filter.input))
    set(.first, place, filter.first)
    set(.second, place, filter.second)
    set(.gain, place, SIMD2(repeating: gain.start))
    set(.slope, place, SIMD2(repeating: gain.slope))
    for index in stride(from: 0, to: count, by: 4) {
      let (left, right) = (note.left[four: index], note.right[four: index])
      let lane = samples.base + (index &* Self.laneCount &+ 2 &* place)
      lane[pair: 0] = SIMD2(left.x, right.x)
      lane[pair: Self.laneCount] = SIMD2(left.y, right.y)
      lane[pair: 2 &* Self.laneCount] = SIMD2(left.z, right.z)
      lane[pair: 3 &* Self.laneCount] = SIMD2(left.w, right.w)
    }
  }

  /// Gives a note its filter and its gain back as they are now.
  func give(_ place: Int, to filter: inout StateVariableFilter, gain: inout LinearRamp) {
    filter.first = get(.first, place)
    filter.second = get(.second, place)
    gain.start = get(.gain, place).x
  }

  /// Adds all notes to `output`.
  func add(to output: Samples, count: Int) {
    let (own, crossed, input, slope) = (row(.own), row(.crossed), row(.input), row(.slope))
    var (first, second, gain) = (row(.first), row(.second), row(.gain))
    for index in 0..<count {
      let error = samples.base[vector: index &* Self.laneCount] - second
      let next = (second + crossed * first) + input * error
      let heard = (second + next) * gain
      halves.base[four: index &* 4] = heard.lowHalf + heard.highHalf
      first = own * first + crossed * error
      second = next
      gain += slope
    }
    set(.first, first)
    set(.second, second)
    set(.gain, gain)
    for index in 0..<count {
      let half = halves.base[four: index &* 4]
      // The low-pass is half of a sum.
      output[frame: index] += 0.5 * (half.lowHalf + half.highHalf)
    }
  }

  private func set(_ row: Row, _ place: Int, _ value: SIMD2<Float>) {
    rows.base[pair: row.rawValue &* Self.laneCount &+ 2 &* place] = value
  }

  private func get(_ row: Row, _ place: Int) -> SIMD2<Float> {
    rows.base[pair: row.rawValue &* Self.laneCount &+ 2 &* place]
  }

  private func set(_ row: Row, _ values: SIMD8<Float>) {
    rows.base[vector: row.rawValue &* Self.laneCount] = values
  }

  private func row(_ row: Row) -> SIMD8<Float> { rows.base[vector: row.rawValue &* Self.laneCount] }
}
