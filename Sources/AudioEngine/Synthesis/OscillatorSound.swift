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
    var phase: Phase

    init(_ patch: Patch, hertz: Double, phase: UInt32) {
      table = patch.waveform.table(hertz: hertz)
      self.hertz = hertz
      self.phase = Phase(value: phase)
    }

    mutating func write(to output: UnsafeMutablePointer<Float>, _ count: Int) {
      let table = table
      phase.forEachFour(count) { index, phases in output[four: index] = table.values(phases) }
    }
  }

  private let isStereo: Bool
  private var left: Oscillator
  private var middle: Oscillator
  private var right: Oscillator
  /// The gain of the left oscillator in the left channel, and in the right one.
  private let near: Float
  private let far: Float
  private var vibrato: Vibrato
  private let noise: Float
  private var random: SplitMix64

  let isOver = false

  init(_ patch: Patch, isStereo: Bool, noteOn: NoteOn, random: inout SplitMix64) {
    self.isStereo = isStereo
    let spread = PortableMath.exp2(patch.spreadCents / 1_200)
    let phase = { (random: inout SplitMix64) in UInt32(truncatingIfNeeded: random.next()) }
    left = Oscillator(patch, hertz: noteOn.hertz / spread, phase: phase(&random))
    // A single one begins at nought, as what is struck does; three begin anywhere in their periods.
    middle = Oscillator(patch, hertz: noteOn.hertz, phase: isStereo ? phase(&random) : 0)
    right = Oscillator(patch, hertz: noteOn.hertz * spread, phase: phase(&random))
    let pan = PanGains(-patch.width)
    (near, far) = (pan.left, pan.right)
    vibrato = Vibrato(patch.vibrato, &random)
    noise = patch.noise
    self.random = SplitMix64(state: random.next())
  }

  mutating func setControls(_ samples: Int) {
    let change = vibrato.next(samples)
    middle.phase.step = phaseStep(hertz: middle.hertz * (1 + change))
    guard isStereo else { return }
    left.phase.step = phaseStep(hertz: left.hertz * (1 - 0.6 * change))
    right.phase.step = phaseStep(hertz: right.hertz * (1 + 0.4 * change))
  }

  mutating func write(to output: NoteSamples, _ span: Span) {
    let count = span.count
    withUnsafeTemporaryAllocation(of: Float.self, capacity: ControlBlock.sampleCount) { buffer in
      // Safe: a span is no longer than a control block, which is whole vectors.
      let both = buffer.baseAddress!
      middle.write(to: isStereo ? both : output.left, count)
      if isStereo {
        left.write(to: output.left, count)
        right.write(to: output.right, count)
        let (near, far) = (near, far)
        for index in stride(from: 0, to: count, by: 4) {
          let (low, high, middle) = (output.left[four: index], output.right[four: index], both[four: index])
          output.left[four: index] = (near * low + far * high) + middle
          output.right[four: index] = (far * low + near * high) + middle
        }
      }
      guard noise > 0 else { return }
      for index in 0..<count { both[index] = noise * random.signed() }
      for index in stride(from: 0, to: count, by: 4) { output.left[four: index] += both[four: index] }
      guard isStereo else { return }
      for index in stride(from: 0, to: count, by: 4) { output.right[four: index] += both[four: index] }
    }
  }
}
