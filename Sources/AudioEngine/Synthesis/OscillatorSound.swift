import WireProtocol

/// A band-limited oscillator, or three of them side by side.
struct OscillatorSound: SoundGenerator {
  struct Patch {
    var waveform: Waveform
    /// What the left one is lower and the right one higher than the middle one; for stereo instruments.
    var spreadCents = 0.0
    /// 0, all three in the middle, to 1.
    var width = 0.8
    var vibrato = Vibrato.Shape()
    /// Breath or bow, beside the oscillators.
    var noise: Float = 0
  }

  private struct Oscillator {
    let table: Wavetable
    let hertz: Double
    var phase: UInt32
    var step: UInt32 = 0

    init(_ patch: Patch, hertz: Double, phase: UInt32) {
      table = patch.waveform.table(hertz: hertz)
      self.hertz = hertz
      self.phase = phase
    }

    mutating func advance(_ count: Int) { phase &+= UInt32(truncatingIfNeeded: count) &* step }
  }

  private let isStereo: Bool
  private var left: Oscillator
  private var middle: Oscillator
  private var right: Oscillator
  /// Of the left oscillator in the left channel, and in the right one.
  private let near: Float
  private let far: Float
  private var vibrato: Vibrato
  private let noise: Float
  private var random: SplitMix64

  let isOver = false

  init(_ patch: Patch, isStereo: Bool, stroke: Stroke, random: inout SplitMix64) {
    self.isStereo = isStereo
    let spread = PortableMath.exp2(patch.spreadCents / 1_200)
    let phase = { (random: inout SplitMix64) in UInt32(truncatingIfNeeded: random.next()) }
    left = Oscillator(patch, hertz: stroke.hertz / spread, phase: phase(&random))
    // A single one begins at nought, as what is struck does; three begin anywhere in their periods.
    middle = Oscillator(patch, hertz: stroke.hertz, phase: isStereo ? phase(&random) : 0)
    right = Oscillator(patch, hertz: stroke.hertz * spread, phase: phase(&random))
    let pan = PanGains(-patch.width)
    (near, far) = (pan.left, pan.right)
    vibrato = Vibrato(patch.vibrato, &random)
    noise = patch.noise
    self.random = SplitMix64(state: random.next())
  }

  mutating func setControls(_ samples: Int) {
    let change = vibrato.next(samples)
    middle.step = phaseStep(hertz: middle.hertz * (1 + change))
    guard isStereo else { return }
    left.step = phaseStep(hertz: left.hertz * (1 - 0.6 * change))
    right.step = phaseStep(hertz: right.hertz * (1 + 0.4 * change))
  }

  mutating func write(to output: NoteSamples, _ span: Span) {
    if isStereo { writeThree(to: output, span.count) } else { writeOne(to: output.left, span.count) }
    guard noise > 0 else { return }
    withUnsafeTemporaryAllocation(of: Float.self, capacity: ControlBlock.sampleCount) { buffer in
      // Safe: a span is no longer than a control block, which is whole vectors.
      let breath = buffer.baseAddress!
      for index in 0..<span.count { breath[index] = random.signed() }
      for index in stride(from: 0, to: span.count, by: 4) {
        output.left[four: index] += noise * breath[four: index]
      }
      guard isStereo else { return }
      for index in stride(from: 0, to: span.count, by: 4) {
        output.right[four: index] += noise * breath[four: index]
      }
    }
  }

  private mutating func writeOne(to output: UnsafeMutablePointer<Float>, _ count: Int) {
    let (table, step) = (middle.table, middle.step)
    var phase = middle.phase
    for index in stride(from: 0, to: count, by: 4) {
      output[four: index] = table.values(phase, step)
      phase &+= 4 &* step
    }
    middle.advance(count)
  }

  private mutating func writeThree(to output: NoteSamples, _ count: Int) {
    var phases = (left.phase, middle.phase, right.phase)
    let steps = (left.step, middle.step, right.step)
    let tables = (left.table, middle.table, right.table)
    let (near, far) = (near, far)
    for index in stride(from: 0, to: count, by: 4) {
      let low = tables.0.values(phases.0, steps.0)
      let middle = tables.1.values(phases.1, steps.1)
      let high = tables.2.values(phases.2, steps.2)
      output.left[four: index] = (near * low + far * high) + middle
      output.right[four: index] = (far * low + near * high) + middle
      phases = (phases.0 &+ 4 &* steps.0, phases.1 &+ 4 &* steps.1, phases.2 &+ 4 &* steps.2)
    }
    left.advance(count)
    middle.advance(count)
    right.advance(count)
  }
}
