/// One stroke on a drum: sines that fall in pitch, sines bent into clangour, and noise through a filter.
struct DrumSound: SoundGenerator {
  struct Patch {
    /// A skin or a bar.
    struct Tone {
      var hertz: Double
      /// Above it at the stroke, and how fast that goes.
      var sweepHertz = 0.0
      var sweepSeconds = 0.05
      var modulator = 1.0
      /// In radians.
      var index = 0.0
      var level: Float
      var decaySeconds: Double
    }

    struct Noise {
      var lowHertz: Double
      var highHertz: Double
      var level: Float
      var attackSeconds = 0.0005
      var decaySeconds: Double
      /// Seconds of further strokes after the first: hands do not meet at once.
      var repeats: [Double] = []
    }

    var tones: [Tone] = []
    var noise: Noise?
  }

  private struct Tone {
    let patch: Patch.Tone
    var phase: UInt32 = 0
    var step: UInt32 = 0
    var modulatorPhase: UInt32 = 0
    var modulatorStep: UInt32 = 0
    var sweep: Envelope
    var level: Envelope
    var segment = Segment.zero
  }

  private struct Noise {
    let patch: Patch.Noise
    var random: SplitMix64
    var lowPass = StateVariableFilter()
    var highPass = StateVariableFilter()
    var level: Envelope
    var segment = Segment.zero
    var repeats: ArraySlice<Double>
  }

  private var tones: [Tone]
  private var noise: Noise?
  private var age = 0
  private(set) var isOver = false

  init(_ patch: Patch, brightness: Double, random: inout SplitMix64) {
    tones = patch.tones.map { tone in
      Tone(
        patch: tone, sweep: Envelope(.init(0, tone.sweepSeconds, 0, 1)),
        level: Envelope(.init(0.0005, tone.decaySeconds, 0, 1)))
    }
    noise = patch.noise.map { noise in
      var part = Noise(
        patch: noise, random: SplitMix64(state: random.next()),
        level: Envelope(.init(noise.attackSeconds, noise.decaySeconds, 0, 1)), repeats: noise.repeats[...])
      part.lowPass.set(hertz: noise.highHertz * brightness, resonance: 0.7)
      part.highPass.set(hertz: noise.lowHertz, resonance: 0.7)
      return part
    }
  }

  mutating func setControls(_ samples: Int) {
    isOver = tones.allSatisfy { $0.level.isOver } && (noise?.level.isOver ?? true)
    for index in tones.indices {
      let patch = tones[index].patch
      let hertz = patch.hertz + patch.sweepHertz * Double(tones[index].sweep.next(samples).start)
      tones[index].step = phaseStep(hertz: hertz)
      tones[index].modulatorStep = phaseStep(hertz: hertz * patch.modulator)
      tones[index].segment = tones[index].level.next(samples)
    }
    guard var noise else { return }
    if let next = noise.repeats.first, Double(age) >= next * 48_000 {
      noise.repeats.removeFirst()
      noise.level.strike()
    }
    age += samples
    noise.segment = noise.level.next(samples)
    self.noise = noise
  }

  mutating func add(to left: UnsafeMutablePointer<Float>, _ right: UnsafeMutablePointer<Float>, _ span: Span)
  {
    for index in tones.indices {
      let tone = tones[index]
      let bend = Float(tone.patch.index / (2 * .pi))
      for sample in stride(from: 0, to: span.count, by: SampleBuffer.vectorCount) {
        let modulation = SIMD8.sine(turns: .turns(tone.modulatorPhase, tone.modulatorStep, sample)) * bend
        let value = SIMD8.sine(turns: .turns(tone.phase, tone.step, sample) + modulation)
        left[vector: sample] += value * tone.segment.vector(span.offset + sample) * tone.patch.level
      }
      tones[index].phase &+= tone.step &* UInt32(span.count)
      tones[index].modulatorPhase &+= tone.modulatorStep &* UInt32(span.count)
    }
    addNoise(to: left, span)
  }

  private mutating func addNoise(to output: UnsafeMutablePointer<Float>, _ span: Span) {
    guard noise != nil else { return }
    withUnsafeTemporaryAllocation(of: Float.self, capacity: ControlBlock.sampleCount) { buffer in
      // Safe: a span is no longer than a control block.
      let samples = buffer.baseAddress!
      for index in 0..<span.count { samples[index] = noise!.random.signed() }
      noise!.highPass.highPass(samples, count: span.count)
      noise!.lowPass.lowPass(samples, count: span.count)
      for index in 0..<span.count {
        output[index] += samples[index] * noise!.segment.value(span.offset + index) * noise!.patch.level
      }
    }
  }
}
