import WireProtocol

/// One stroke on a drum: sines that fall in pitch, sines bent into clangour, and noise through a filter.
struct DrumSound: SoundGenerator {
  struct Recipe {
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

  fileprivate struct Tone {
    let recipe: Recipe.Tone
    var phase: UInt32 = 0
    var step: UInt32 = 0
    var modulatorPhase: UInt32 = 0
    var modulatorStep: UInt32 = 0
    var sweep: Envelope
    var level: Envelope
    var segment = Segment.zero
  }

  fileprivate struct Noise {
    let recipe: Recipe.Noise
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

  init(stroke: Stroke, random: inout SplitMix64) {
    let recipe = DrumKit.recipe(pitch: stroke.pitch)
    tones = recipe.tones.map { tone in
      Tone(
        recipe: tone, sweep: Envelope(.init(0, tone.sweepSeconds, 0, 1)),
        level: Envelope(.init(0.0005, tone.decaySeconds, 0, 1)))
    }
    noise = recipe.noise.map { noise in
      var part = Noise(
        recipe: noise, random: SplitMix64(state: random.next()),
        level: Envelope(.init(noise.attackSeconds, noise.decaySeconds, 0, 1)), repeats: noise.repeats[...])
      part.lowPass.set(hertz: noise.highHertz * stroke.brightness, resonance: 0.7)
      part.highPass.set(hertz: noise.lowHertz, resonance: 0.7)
      return part
    }
  }

  mutating func setControls(_ samples: Int) {
    isOver = tones.allSatisfy { $0.level.isOver } && (noise?.level.isOver ?? true)
    for index in tones.indices {
      let recipe = tones[index].recipe
      let hertz = recipe.hertz + recipe.sweepHertz * Double(tones[index].sweep.next(samples).start)
      tones[index].step = phaseStep(hertz: hertz)
      tones[index].modulatorStep = phaseStep(hertz: hertz * recipe.modulator)
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

  mutating func add(to output: Samples, _ span: Span) {
    for index in tones.indices where !tones[index].level.isOver {
      tones[index].add(to: output.values, span)
    }
    if noise?.level.isOver == false { noise?.add(to: output.values, span) }
  }
}

extension DrumSound.Tone {
  fileprivate mutating func add(to output: UnsafeMutablePointer<Float>, _ span: Span) {
    let (step, modulatorStep, bend) = (step, modulatorStep, Float(recipe.index / (2 * .pi)))
    let (levels, gain) = (segment, recipe.level)
    var (phase, modulatorPhase) = (phase, modulatorPhase)
    for index in 0..<Int32(truncatingIfNeeded: span.count) {
      let level = levels.value(Int32(truncatingIfNeeded: span.offset) &+ index) * gain
      let modulation = PortableMath.sine(PortableMath.turns(modulatorPhase)) * bend
      output[Int(index)] += PortableMath.sine(PortableMath.turns(phase) + modulation) * level
      phase &+= step
      modulatorPhase &+= modulatorStep
    }
    (self.phase, self.modulatorPhase) = (phase, modulatorPhase)
  }
}

extension DrumSound.Noise {
  fileprivate mutating func add(to output: UnsafeMutablePointer<Float>, _ span: Span) {
    withUnsafeTemporaryAllocation(of: Float.self, capacity: ControlBlock.sampleCount) { buffer in
      // Safe: a span is no longer than a control block.
      let samples = buffer.baseAddress!
      for index in 0..<span.count { samples[index] = random.signed() }
      highPass.highPass(samples, count: span.count)
      lowPass.lowPass(samples, count: span.count)
      for index in 0..<span.count {
        output[index] += samples[index] * (segment.value(span.offset + index) * recipe.level)
      }
    }
  }
}
