/// A note's low-pass: it follows the pitch and the stroke, and an envelope opens it.
struct NoteFilter {
  private let octaves: Float
  private let damping: Float
  private let hertz: Float
  private var envelope: Envelope
  /// Of which several are computed at once.
  var filter = StateVariableFilter()

  init(_ settings: InstrumentPatch.Filter, stroke: Stroke) {
    octaves = Float(settings.octaves)
    damping = Float(1 / settings.resonance)
    let pitchOctaves = settings.tracking * Double(stroke.pitch - 60) / 12
    // From the softest to the hardest stroke, an octave.
    let strokeOctaves = Double(stroke.velocity - 100) / 127
    hertz = Float(settings.hertz * PortableMath.exp2(pitchOctaves + strokeOctaves))
    envelope = Envelope(settings.shape)
  }

  mutating func setControls(_ samples: Int, isReleased: Bool) {
    if isReleased { envelope.release() }
    let opening = PortableMath.exp2(octaves * envelope.next(samples).start)
    filter.set(hertz: hertz * opening, damping: damping)
  }
}
