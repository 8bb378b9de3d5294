import WireProtocol

/// Frequency modulation (John Chowning, "The Synthesis of Complex Audio Spectra by Means of Frequency Modulation",
/// 1973): a few sines, each bent by another.
struct ModulatedSound: SoundGenerator {
  struct Patch {
    struct Pair {
      /// As a multiple of the note's frequency.
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
    var sine = ModulatedSine()
    /// How far the carrier is bent at most, in turns.
    var bendGain: Float
    var bend: Envelope
    var bendSegment = LinearRamp.zero
    var level: Envelope
    var levelSegment = LinearRamp.zero
    var left: Float
    var right: Float
  }

  /// Above it, bent sines would come back as sounds that belong to no note.
  private static let highestHertz = 21_500.0

  private var pairs: [Pair]
  private var vibrato: Vibrato
  private let isStereo: Bool
  private(set) var isOver = false

  init(_ patch: Patch, isStereo: Bool, noteOn: NoteOn, random: inout SplitMix64) {
    self.isStereo = isStereo
    vibrato = Vibrato(patch.vibrato, &random)
    let hertz = noteOn.hertz
    // What is higher dies away faster and is less bent, as with real strings and bars.
    let speed = PortableMath.exp2(Double(60 - noteOn.pitch) / 30)
    let calm = PortableMath.exp2(Double(60 - noteOn.pitch) / 40)
    pairs = patch.pairs.compactMap { pair in
      let carrierHertz = hertz * pair.carrier * PortableMath.exp2(pair.cents / 1_200)
      let modulatorHertz = hertz * pair.modulator
      guard carrierHertz < Self.highestHertz else { return nil }
      // Side bands end about two modulators beyond the index (Carson's rule).
      let room = max(0, (Self.highestHertz - carrierHertz) / modulatorHertz - 2)
      let index = min(pair.index * noteOn.brightness * calm, room)
      let pan = PanGains(pair.pan)
      return Pair(
        carrierHertz: carrierHertz, modulatorHertz: modulatorHertz,
        bendGain: Float(index / (2 * .pi)), bend: Envelope(pair.indexShape.decaying(speed)),
        level: Envelope(pair.levelShape.decaying(speed)),
        left: pair.level * (isStereo ? pan.left : 1), right: pair.level * pan.right)
    }
  }

  mutating func setControls(_ samples: Int) {
    let factor = 1 + vibrato.next(samples)
    isOver = true
    for index in pairs.indices {
      pairs[index].sine.set(
        carrierHertz: pairs[index].carrierHertz * factor, modulatorHertz: pairs[index].modulatorHertz * factor
      )
      pairs[index].bendSegment = pairs[index].bend.next(samples).scaled(pairs[index].bendGain)
      isOver = isOver && pairs[index].level.isOver
      pairs[index].levelSegment = pairs[index].level.next(samples)
    }
  }

  mutating func write(to output: NoteSamples, _ span: Span) {
    output.clear(span.count, channelCount: isStereo ? 2 : 1)
    for index in pairs.indices where !pairs[index].level.isOver {
      pairs[index].sine.add(
        to: output, span, bend: pairs[index].bendSegment, level: pairs[index].levelSegment,
        left: pairs[index].left,
        right: isStereo ? pairs[index].right : nil)
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
