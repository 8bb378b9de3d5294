/// A note's low-pass: it follows the pitch and the velocity, and an envelope opens it.
struct NoteFilter {
  private let octaves: Float
  private let damping: Float
  private let hertz: Float
  private var envelope: Envelope
  /// The filter itself; several are computed at once (`FilterBank`).
  var filter = StateVariableFilter()

  init(_ settings: InstrumentPatch.Filter, noteOn: NoteOn) {
    octaves = Float(settings.octaves)
    damping = Float(1 / settings.resonance)
    let pitchOctaves = settings.tracking * Double(noteOn.pitch - 60) / 12
    // From the softest to the hardest note, an octave.
    let strokeOctaves = Double(noteOn.velocity - 100) / 127
    hertz = Float(settings.hertz * PortableMath.exp2(pitchOctaves + strokeOctaves))
    envelope = Envelope(settings.shape)
  }

  mutating func setControls(_ samples: Int, isReleased: Bool) {
    if isReleased { envelope.release() }
    let opening = PortableMath.exp2(octaves * envelope.next(samples).start)
    filter.set(hertz: hertz * opening, damping: damping)
  }
}
