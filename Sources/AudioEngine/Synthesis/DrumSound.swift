import WireProtocol

/// One stroke on a drum: sines that fall in pitch, sines bent into clangour, and noise through a filter.
struct DrumSound: SoundGenerator {
  struct Recipe {
    /// A skin or a bar.
    struct Tone {
      var hertz: Double
      /// Above it at the start of the note, and how fast that goes.
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
    var sine = ModulatedSine()
    var sweep: Envelope
    var level: Envelope
    var segment = LinearRamp.zero
  }

  fileprivate struct Noise {
    static let damping: Float = 1 / 0.7

    let recipe: Recipe.Noise
    var random: SplitMix64
    var lowPass = StateVariableFilter()
    var highPass = StateVariableFilter()
    var level: Envelope
    var segment = LinearRamp.zero
    var repeats: ArraySlice<Double>
  }

  private var tones: [Tone]
  private var noise: Noise?
  private var age = 0
  private(set) var isOver = false

  init(noteOn: NoteOn, random: inout SplitMix64) {
    let recipe = DrumKit.recipe(pitch: noteOn.pitch)
    tones = recipe.tones.map { tone in
      Tone(
        recipe: tone, sweep: Envelope(.init(0, tone.sweepSeconds, 0, 1)),
        level: Envelope(.init(0.0005, tone.decaySeconds, 0, 1)))
    }
    noise = recipe.noise.map { noise in
      var part = Noise(
        recipe: noise, random: SplitMix64(state: random.next()),
        level: Envelope(.init(noise.attackSeconds, noise.decaySeconds, 0, 1)), repeats: noise.repeats[...])
      part.lowPass.set(hertz: Float(noise.highHertz * noteOn.brightness), damping: Noise.damping)
      part.highPass.set(hertz: Float(noise.lowHertz), damping: Noise.damping)
      return part
    }
  }

  mutating func setControls(_ samples: Int) {
    isOver = tones.allSatisfy { $0.level.isOver } && (noise?.level.isOver ?? true)
    for index in tones.indices {
      let recipe = tones[index].recipe
      let hertz = recipe.hertz + recipe.sweepHertz * Double(tones[index].sweep.next(samples).start)
      tones[index].sine.set(carrierHertz: hertz, modulatorHertz: hertz * recipe.modulator)
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

  mutating func write(to output: NoteSamples, _ span: Span) {
    output.clear(span.count, channelCount: 1)
    for index in tones.indices where !tones[index].level.isOver {
      let recipe = tones[index].recipe
      let bend = LinearRamp(start: Float(recipe.index / (2 * .pi)), slope: 0)
      tones[index].sine.add(
        to: output, span, bend: bend, level: tones[index].segment, left: recipe.level, right: nil)
    }
    if noise?.level.isOver == false { noise?.add(to: output.left, span) }
  }
}

extension DrumSound.Noise {
  fileprivate mutating func add(to output: UnsafeMutablePointer<Float>, _ span: Span) {
    withUnsafeTemporaryAllocation(of: Float.self, capacity: ControlBlock.sampleCount) { buffer in
      // Safe: a span is no longer than a control block, which is whole vectors.
      let samples = buffer.baseAddress!
      for index in 0..<span.count { samples[index] = random.signed() }
      StateVariableFilter.bandPass(
        &highPass, &lowPass, samples, count: span.count, damping: Self.damping)
      var offsets = LinearRamp.offsets(span.offset)
      for index in stride(from: 0, to: span.count, by: 4) {
        output[four: index] += samples[four: index] * (segment.values(offsets) * recipe.level)
        offsets += 4
      }
    }
  }
}
