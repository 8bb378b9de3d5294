/// A note's low-pass: it follows the pitch and the stroke, and an envelope opens it.
struct NoteFilter {
  private let settings: InstrumentPatch.Filter
  private let hertz: Double
  private var envelope: Envelope
  /// Of which several are computed at once.
  var filter = StateVariableFilter()

  init(_ settings: InstrumentPatch.Filter, stroke: Stroke) {
    self.settings = settings
    let pitchOctaves = settings.tracking * Double(stroke.pitch - 60) / 12
    // From the softest to the hardest stroke, an octave.
    let strokeOctaves = Double(stroke.velocity - 100) / 127
    hertz = settings.hertz * PortableMath.exp2(pitchOctaves + strokeOctaves)
    envelope = Envelope(settings.shape)
  }

  mutating func setControls(_ samples: Int, isReleased: Bool) {
    if isReleased { envelope.release() }
    let opening = PortableMath.exp2(settings.octaves * Double(envelope.next(samples).start))
    filter.set(hertz: hertz * opening, resonance: settings.resonance)
  }

  mutating func apply(to samples: Samples, _ span: Span) {
    if samples.channelCount == 2 {
      filter.lowPass(samples, count: span.count)
    } else {
      filter.lowPass(samples.values, count: span.count)
    }
  }
}
