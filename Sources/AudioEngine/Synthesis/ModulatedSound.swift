import WireProtocol

/// Frequency modulation (John Chowning, "The Synthesis of Complex Audio Spectra by Means of Frequency Modulation",
/// 1973): a few sines, each bent by another.
struct ModulatedSound: SoundGenerator {
  struct Patch {
    struct Pair {
      /// Of the note's frequency.
      var carrier: Double
      var modulator: Double
      /// How far the carrier is bent, in radians.
      var index: Double
      var indexShape: Envelope.Shape
      var level: Float
      var levelShape: Envelope.Shape
      var cents = 0.0
      var pan = 0.0
    }

    var pairs: [Pair]
    var vibrato = Vibrato.Shape()
  }

  fileprivate struct Pair {
    var carrierHertz: Double
    var modulatorHertz: Double
    var (carrierPhase, carrierStep, modulatorPhase, modulatorStep): (UInt32, UInt32, UInt32, UInt32)
    /// In turns.
    var indexGain: Float
    var index: Envelope
    var indexSegment = Segment.zero
    var level: Envelope
    var levelSegment = Segment.zero
    var left: Float
    var right: Float
  }

  /// Above it, bent sines would come back as sounds that belong to no note.
  private static let highestHertz = 21_500.0

  private var pairs: [Pair]
  private var vibrato: Vibrato
  private let isStereo: Bool
  private(set) var isOver = false

  init(_ patch: Patch, isStereo: Bool, stroke: Stroke, random: inout SplitMix64) {
    self.isStereo = isStereo
    vibrato = Vibrato(patch.vibrato, &random)
    let hertz = stroke.hertz
    // What is higher dies away faster and is less bent, as with real strings and bars.
    let speed = PortableMath.exp2(Double(60 - stroke.pitch) / 30)
    let calm = PortableMath.exp2(Double(60 - stroke.pitch) / 40)
    pairs = patch.pairs.compactMap { pair in
      let carrierHertz = hertz * pair.carrier * PortableMath.exp2(pair.cents / 1_200)
      let modulatorHertz = hertz * pair.modulator
      guard carrierHertz < Self.highestHertz else { return nil }
      // Side bands end about two modulators beyond the index (Carson's rule).
      let room = max(0, (Self.highestHertz - carrierHertz) / modulatorHertz - 2)
      let index = min(pair.index * stroke.brightness * calm, room)
      let pan = PanGains(pair.pan)
      return Pair(
        carrierHertz: carrierHertz, modulatorHertz: modulatorHertz,
        carrierPhase: 0, carrierStep: 0, modulatorPhase: 0, modulatorStep: 0,
        indexGain: Float(index / (2 * .pi)), index: Envelope(pair.indexShape.decaying(speed)),
        level: Envelope(pair.levelShape.decaying(speed)),
        left: pair.level * (isStereo ? pan.left : 1), right: pair.level * pan.right)
    }
  }

  mutating func setControls(_ samples: Int) {
    let factor = 1 + vibrato.next(samples)
    isOver = true
    for index in pairs.indices {
      pairs[index].carrierStep = phaseStep(hertz: pairs[index].carrierHertz * factor)
      pairs[index].modulatorStep = phaseStep(hertz: pairs[index].modulatorHertz * factor)
      pairs[index].indexSegment = pairs[index].index.next(samples)
      isOver = isOver && pairs[index].level.isOver
      pairs[index].levelSegment = pairs[index].level.next(samples)
    }
  }

  mutating func add(to output: Samples, _ span: Span) {
    for index in pairs.indices where !pairs[index].level.isOver {
      pairs[index].add(to: output, span)
    }
  }
}

extension ModulatedSound.Pair {
  fileprivate mutating func add(to output: Samples, _ span: Span) {
    withUnsafeTemporaryAllocation(of: Float.self, capacity: ControlBlock.sampleCount) { buffer in
      // Safe: a span is no longer than a control block, which is whole vectors.
      let samples = buffer.baseAddress!
      let count = (span.count + SampleBuffer.vectorCount - 1) & ~(SampleBuffer.vectorCount - 1)
      write(to: samples, span.offset, count)
      carrierPhase &+= UInt32(truncatingIfNeeded: span.count) &* carrierStep
      modulatorPhase &+= UInt32(truncatingIfNeeded: span.count) &* modulatorStep
      let (left, right) = (left, right)
      if output.channelCount == 2 {
        for index in stride(from: 0, to: count, by: SampleBuffer.vectorCount) {
          let values = samples[vector: index]
          output.add(index, left: values.lowHalf * left, right: values.lowHalf * right)
          output.add(index + 4, left: values.highHalf * left, right: values.highHalf * right)
        }
      } else {
        for index in stride(from: 0, to: count, by: SampleBuffer.vectorCount) {
          output.values[vector: index] += samples[vector: index] * left
        }
      }
    }
  }

  private func write(to samples: UnsafeMutablePointer<Float>, _ offset: Int, _ count: Int) {
    let (first, count) = (Int32(truncatingIfNeeded: offset), Int32(truncatingIfNeeded: count))
    let (carrierPhase, carrierStep, levels) = (carrierPhase, carrierStep, levelSegment)
    // A phase is not less than 0: what is not bent is as if it were bent by 0.
    guard indexGain != 0, indexSegment.start != 0 || indexSegment.slope != 0 else {
      for index in 0..<count {
        let carrier = PortableMath.turns(carrierPhase &+ UInt32(truncatingIfNeeded: index) &* carrierStep)
        samples[Int(index)] = PortableMath.sine(carrier) * levels.value(first &+ index)
      }
      return
    }
    let (modulatorPhase, modulatorStep) = (modulatorPhase, modulatorStep)
    let (indices, indexGain) = (indexSegment, indexGain)
    // Two loops, each of which the processor has enough registers for.
    for index in 0..<count {
      let modulator = PortableMath.turns(modulatorPhase &+ UInt32(truncatingIfNeeded: index) &* modulatorStep)
      samples[Int(index)] = PortableMath.sine(modulator) * (indices.value(first &+ index) * indexGain)
    }
    for index in 0..<count {
      let carrier = PortableMath.turns(carrierPhase &+ UInt32(truncatingIfNeeded: index) &* carrierStep)
      samples[Int(index)] = PortableMath.sine(carrier + samples[Int(index)]) * levels.value(first &+ index)
    }
  }
}

extension Envelope.Shape {
  /// With a decay of another length.
  func decaying(_ factor: Double) -> Envelope.Shape {
    var shape = self
    shape.decaySeconds *= factor
    return shape
  }
}
