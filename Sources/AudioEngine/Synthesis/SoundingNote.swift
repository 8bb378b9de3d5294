import WireProtocol

/// A note while it is heard: its sound, through its filter and under its envelope.
final class SoundingNote {
  /// Samples from the score's first.
  let start: Int
  /// Where it is let go.
  private let end: Int
  private let patch: InstrumentPatch
  private let gain: Float
  private var sound: any SoundGenerator
  private var envelope: Envelope
  private var segment = Segment.zero
  private var filter: NoteFilter?
  private(set) var isCut = false

  /// - Parameters:
  ///   - start: where it begins, which is also what its randomness is drawn from.
  ///   - cutoffHertz: its part's own; nil for the instrument's.
  init(_ note: Score.Note, start: Int, instrument: Score.Instrument, cutoffHertz: Double?, seed: UInt64) {
    self.start = start
    end = start + note.length
    patch = InstrumentPatch.of(instrument)
    let velocity = Float(note.velocity) / 100
    gain = patch.level * velocity * (0.3 + 0.7 * velocity)
    envelope = Envelope(patch.envelope)
    var random = SplitMix64(
      state: seed ^ UInt64(truncatingIfNeeded: start) &* 0xD605_1A21_4C5D_3E6B
        ^ UInt64(note.pitch) &* 0xA24B_AED4_963E_E407)
    let brightness = 0.4 + 0.6 * Double(velocity)
    switch patch.source {
    case .oscillators(let source):
      sound = OscillatorSound(source, isStereo: patch.isStereo, pitch: note.pitch, random: &random)
    case .modulated(let source):
      sound = ModulatedSound(
        source, isStereo: patch.isStereo, pitch: note.pitch, brightness: brightness, random: &random)
    case .string:
      sound = StringSound(pitch: note.pitch, brightness: min(1, velocity * 0.75), random: &random)
    case .drums:
      sound = DrumSound(DrumKit.patch(pitch: note.pitch), brightness: brightness, random: &random)
    }
    filter = NoteFilter(patch.filter, cutoffHertz: cutoffHertz, pitch: note.pitch, velocity: note.velocity)
  }

  /// Whether nothing of it is heard any more.
  var isOver: Bool { envelope.isOver || sound.isOver }

  /// Gives its place to another within 5 ms.
  func cut() {
    isCut = true
    envelope.cut()
  }

  /// Sets what changes slowly for the samples from `position` on.
  func setControls(at position: Int, samples: Int) {
    if position >= end { envelope.release() }
    segment = envelope.next(samples)
    sound.setControls(samples)
    filter?.setControls(samples, isReleased: position >= end)
  }

  /// Adds the next samples to its part's.
  func add(to part: Channels, through scratch: Channels, _ span: Span) {
    scratch.clear(span.count)
    sound.add(to: scratch.left, scratch.right, span)
    filter?.apply(to: scratch, span, isStereo: patch.isStereo)
    for index in stride(from: 0, to: span.count, by: SampleBuffer.vectorCount) {
      let gains = segment.vector(span.offset + index) * gain
      part.left[vector: index] += scratch.left[vector: index] * gains
      if patch.isStereo { part.right[vector: index] += scratch.right[vector: index] * gains }
    }
  }
}

/// A note's low-pass.
struct NoteFilter {
  private let settings: InstrumentPatch.Filter
  private let hertz: Double
  private var envelope: Envelope
  private var filter = StateVariableFilter()

  init?(_ settings: InstrumentPatch.Filter?, cutoffHertz: Double?, pitch: Int, velocity: Int) {
    guard settings != nil || cutoffHertz != nil else { return nil }
    self.settings = settings ?? InstrumentPatch.Filter(hertz: 20_000, tracking: 0)
    let pitchOctaves = self.settings.tracking * Double(pitch - 60) / 12
    // A harder stroke is a brighter one, by an octave from the softest to the hardest.
    let velocityOctaves = Double(velocity - 100) / 127
    hertz =
      cutoffHertz ?? self.settings.hertz * PortableMath.exp2(pitchOctaves + velocityOctaves)
    envelope = Envelope(self.settings.shape)
  }

  mutating func setControls(_ samples: Int, isReleased: Bool) {
    if isReleased { envelope.release() }
    let opening =
      settings.octaves == 0 ? 1 : PortableMath.exp2(settings.octaves * Double(envelope.next(samples).start))
    filter.set(hertz: hertz * opening, resonance: settings.resonance)
  }

  mutating func apply(to samples: Channels, _ span: Span, isStereo: Bool) {
    if isStereo {
      filter.lowPass(samples.left, samples.right, count: span.count)
    } else {
      filter.lowPass(samples.left, count: span.count)
    }
  }
}
