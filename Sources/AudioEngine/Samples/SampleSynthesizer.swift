import Glibc
import WireProtocol

/// Sound from a `SampleScore`: 48 kHz stereo, interleaved.
struct SampleSynthesizer {
  private static let sampleRate = 48_000.0
  /// −3 dBFS: what follows (resampling, Opus) may overshoot a little without clipping.
  private static let peak = 0.7079

  private var random: SplitMix64
  private var left: [Float]
  private var right: [Float]

  private init(_ score: SampleScore) {
    random = SplitMix64(state: score.seed)
    left = [Float](repeating: 0, count: Int(score.durationSeconds * Self.sampleRate))
    right = left
  }

  static func render(_ score: SampleScore) -> [Int16] {
    var synthesizer = SampleSynthesizer(score)
    let samplesPerBeat = sampleRate * 60 / score.beatsPerMinute
    for note in score.notes {
      let start = Int(note.startBeat * samplesPerBeat)
      let count = Int(note.beats * samplesPerBeat)
      switch note.instrument {
      case .string: synthesizer.pluck(note, start: start, count: count)
      case .voice: synthesizer.sing(note, start: start, count: count)
      }
    }
    var reverb = SampleReverb(level: Float(score.reverbLevel))
    reverb.apply(&synthesizer.left, &synthesizer.right)
    return synthesizer.finish()
  }

  private static func frequency(_ pitch: Int) -> Double { 440 * exp2((Double(pitch) - 69) / 12) }

  /// Equal power, so that a note is as loud at the side as in the middle.
  private static func gains(pan: Double, level: Double) -> (left: Float, right: Float) {
    let angle = (pan + 1) * .pi / 4
    return (Float(cos(angle) * level), Float(sin(angle) * level))
  }

  /// Half a cosine from 0 to 1 over `length` samples, and 1 beyond: an onset or a release without a click.
  private static func ramp(_ sample: Int, _ length: Int) -> Float {
    sample >= length ? 1 : sample <= 0 ? 0 : Float(0.5 - 0.5 * cos(.pi * Double(sample) / Double(length)))
  }

  /// Karplus–Strong: a burst of noise goes round a loop as long as one period, duller each time.
  private mutating func pluck(_ note: SampleScore.Note, start: Int, count: Int) {
    let frequency = Self.frequency(note.pitch)
    // The averaging filter shortens the loop by half a sample; the fraction left is interpolated.
    let period = Self.sampleRate / frequency + 0.5
    let length = Int(period)
    let fraction = Float(period - Double(length))
    var string = burst(count: length + 1, cutoff: 500 + 4 * frequency)
    // To −60 dB in 12 s for low strings, faster for high ones.
    let decay = Float(pow(0.001, (1 + frequency / 700) / (frequency * 12)))
    let gain = Self.gains(pan: note.pan, level: note.level)
    let release = Int(Self.sampleRate * 1.2)
    var position = 0
    for offset in 0..<min(count + release, left.count - start) {
      let next = position == length ? 0 : position + 1
      let after = next == length ? 0 : next + 1
      let now = string[next] + fraction * (string[position] - string[next])
      let then = string[after] + fraction * (string[next] - string[after])
      let envelope = Self.ramp(offset, 144) * Self.ramp(count + release - offset, release)
      let value = string[position] * envelope
      string[position] = decay * 0.5 * (now + then)
      position = next
      left[start + offset] += value * gain.left
      right[start + offset] += value * gain.right
    }
  }

  /// Noise without its heights or a constant part, and of the same power for every length.
  private mutating func burst(count: Int, cutoff: Double) -> [Float] {
    var noise = (0..<count).map { _ in random.signed() }
    let share = Float(1 - exp(-2 * .pi * cutoff / Self.sampleRate))
    // Each of two low-passes goes round twice, so that the end meets the beginning without a step.
    for _ in 0..<2 {
      var low: Float = 0
      for turn in 0..<2 {
        for index in noise.indices {
          low += share * (noise[index] - low)
          if turn == 1 { noise[index] = low }
        }
      }
    }
    let mean = noise.reduce(0, +) / Float(count)
    let power = noise.reduce(0) { $0 + ($1 - mean) * ($1 - mean) } / Float(count)
    return noise.map { ($0 - mean) / (power.squareRoot() + 1e-6) }
  }

  /// Three singers on one note: sawtooths with vibrato of their own, through the formants of a soft "ah".
  private mutating func sing(_ note: SampleScore.Note, start: Int, count: Int) {
    let release = Int(Self.sampleRate * 0.7)
    let length = min(count + release, left.count - start)
    var bus = (left: [Float](repeating: 0, count: length), right: [Float](repeating: 0, count: length))
    for singer in [-1.0, 0, 1] {
      let gain = Self.gains(pan: max(-1, min(1, note.pan + singer * 0.3)), level: note.level / 3)
      let vibrato = 2 * Double.pi * (5.2 + 0.4 * Double(random.signed())) / Self.sampleRate
      let vibratoPhase = 3 * Double(random.signed())
      let detuned = Self.frequency(note.pitch) * exp2((singer * 4 + Double(random.signed())) / 1_200)
      var phase = Float(0.5 + 0.5 * random.signed())
      var step: Float = 0
      for offset in 0..<length {
        if offset % 64 == 0 {
          let depth = 14 * Double(Self.ramp(offset - 14_400, 48_000)) / 1_200
          step = Float(detuned * exp2(depth * sin(vibratoPhase + vibrato * Double(offset))) / Self.sampleRate)
        }
        phase += step
        if phase >= 1 { phase -= 1 }
        let value = 2 * phase - 1 - Self.smoothing(phase, step) + 0.03 * random.signed()
        bus.left[offset] += value * gain.left
        bus.right[offset] += value * gain.right
      }
    }
    let attack = Int(Self.sampleRate * 0.3)
    var throats = (Throat(), Throat())
    for offset in 0..<length {
      let envelope = Self.ramp(offset, attack) * Self.ramp(count + release - offset, release)
      left[start + offset] += throats.0.filter(bus.left[offset]) * envelope
      right[start + offset] += throats.1.filter(bus.right[offset]) * envelope
    }
  }

  /// PolyBLEP: rounds the sawtooth's edge, so that nothing folds back from above the Nyquist frequency.
  private static func smoothing(_ phase: Float, _ step: Float) -> Float {
    if phase < step {
      let t = phase / step
      return t + t - t * t - 1
    }
    if phase > 1 - step {
      let t = (phase - 1) / step
      return t * t + t + t + 1
    }
    return 0
  }

  /// Removes what is below hearing, brings the peak to −3 dBFS and lets the last seconds fade to silence.
  private mutating func finish() -> [Int16] {
    var (slowLeft, slowRight): (Float, Float) = (0, 0)
    var loudest: Float = 0
    let fade = Int(Self.sampleRate * 5)
    for index in left.indices {
      slowLeft += 0.003 * (left[index] - slowLeft)
      slowRight += 0.003 * (right[index] - slowRight)
      let gain = Self.ramp(left.count - 2_400 - index, fade)
      left[index] = (left[index] - slowLeft) * gain
      right[index] = (right[index] - slowRight) * gain
      loudest = max(loudest, abs(left[index]), abs(right[index]))
    }
    let scale = Float(Self.peak) * 32_767 / loudest
    var samples = [Int16](repeating: 0, count: left.count * 2)
    for index in left.indices {
      samples[2 * index] = Int16((left[index] * scale).rounded())
      samples[2 * index + 1] = Int16((right[index] * scale).rounded())
    }
    return samples
  }
}

/// The resonances that make a buzz a voice.
private struct Throat {
  // Frequency, bandwidth in hertz and gain, between "oh" and "ah".
  private var formants = [
    Resonator(280, 220, 0.9), Resonator(560, 110, 1), Resonator(960, 130, 0.6), Resonator(2_600, 240, 0.25),
  ]

  mutating func filter(_ input: Float) -> Float {
    var sum: Float = 0
    for index in formants.indices { sum += formants[index].filter(input) }
    return sum
  }
}

/// A band-pass of the second order with gain 1 in the middle.
private struct Resonator {
  private let input: Float
  private let first: Float
  private let second: Float
  private var (x1, x2, y1, y2): (Float, Float, Float, Float) = (0, 0, 0, 0)

  init(_ frequency: Double, _ bandwidth: Double, _ gain: Double) {
    let omega = 2 * .pi * frequency / 48_000
    let alpha = sin(omega) * bandwidth / (2 * frequency)
    input = Float(alpha / (1 + alpha) * gain)
    first = Float(-2 * cos(omega) / (1 + alpha))
    second = Float((1 - alpha) / (1 + alpha))
  }

  mutating func filter(_ x0: Float) -> Float {
    let y0 = input * (x0 - x2) - first * y1 - second * y2
    (x2, x1, y2, y1) = (x1, x0, y1, y0)
    return y0
  }
}
