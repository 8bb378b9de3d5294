/// Band-limited oscillators, side by side.
struct OscillatorSound: SoundGenerator {
  struct Patch {
    struct Oscillator {
      var waveform: Waveform
      var ratio = 1.0
      var cents = 0.0
      var level: Float = 1
      /// −1, left, to 1, right; not for instruments of one channel.
      var pan: Double = 0
    }

    var oscillators: [Oscillator]
    var vibrato = Vibrato.Shape()
    /// Each oscillator begins anywhere in its period; otherwise all at its beginning, as a plucked sound does.
    var hasRandomPhases = true
    /// Breath or bow, beside the oscillators.
    var noise: Float = 0
  }

  private struct Oscillator {
    var table: Wavetable
    var hertz: Double
    var phase: UInt32
    var step: UInt32 = 0
    var left: Float
    var right: Float
    var vibrato: Vibrato
  }

  private var oscillators: [Oscillator]
  private let isStereo: Bool
  private let noiseLevel: Float
  private var random: SplitMix64

  let isOver = false

  init(_ patch: Patch, isStereo: Bool, pitch: Int, random: inout SplitMix64) {
    self.isStereo = isStereo
    noiseLevel = patch.noise
    oscillators = patch.oscillators.map { oscillator in
      let hertz =
        PortableMath.hertz(pitch: Double(pitch)) * oscillator.ratio
        * PortableMath.exp2(oscillator.cents / 1_200)
      let pan = PanGains(oscillator.pan)
      let phase = UInt32(truncatingIfNeeded: random.next())
      return Oscillator(
        table: oscillator.waveform.table(hertz: hertz), hertz: hertz,
        phase: patch.hasRandomPhases ? phase : 0,
        left: oscillator.level * (isStereo ? pan.left : 1), right: oscillator.level * pan.right,
        vibrato: Vibrato(patch.vibrato, &random))
    }
    self.random = SplitMix64(state: random.next())
  }

  mutating func setControls(_ samples: Int) {
    for index in oscillators.indices {
      let factor = oscillators[index].vibrato.next(samples)
      oscillators[index].step = phaseStep(hertz: oscillators[index].hertz * factor)
    }
  }

  mutating func add(to left: UnsafeMutablePointer<Float>, _ right: UnsafeMutablePointer<Float>, _ span: Span)
  {
    for index in oscillators.indices {
      let oscillator = oscillators[index]
      if isStereo {
        oscillator.table.add(
          to: left, right, count: span.count, phase: oscillator.phase, step: oscillator.step,
          gains: SIMD2(oscillator.left, oscillator.right))
      } else {
        oscillator.table.add(
          to: left, count: span.count, phase: oscillator.phase, step: oscillator.step, gain: oscillator.left)
      }
      oscillators[index].phase &+= oscillator.step &* UInt32(span.count)
    }
    guard noiseLevel > 0 else { return }
    for index in 0..<span.count {
      let value = noiseLevel * random.signed()
      left[index] += value
      if isStereo { right[index] += value }
    }
  }
}

/// The shares of left and right, of equal power wherever it is; 1 and 1 in the middle.
struct PanGains {
  var left: Float
  var right: Float

  /// - Parameter pan: −1, left, to 1, right.
  init(_ pan: Double) {
    let turns = (pan + 1) / 8
    left = Float(PortableMath.cosine(turns: turns) * 2.0.squareRoot())
    right = Float(PortableMath.sine(turns: turns) * 2.0.squareRoot())
  }
}
