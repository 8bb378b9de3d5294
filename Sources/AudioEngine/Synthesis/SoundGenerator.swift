/// What makes one note's raw sound; its filter and its envelope are the note's (`SoundingNote`).
protocol SoundGenerator {
  /// Whether nothing more is to be heard, though the note is held.
  var isOver: Bool { get }

  /// Sets what changes slowly for the samples that follow.
  mutating func setControls(_ samples: Int)

  /// Makes the next samples; may write over the span's end, up to a whole vector.
  mutating func write(to output: NoteSamples, _ span: Span)
}

/// How a note is played.
struct NoteOn {
  var pitch: Int
  /// 1 to 127.
  var velocity: Int

  var hertz: Double { PortableMath.hertz(pitch: Double(pitch)) }
  /// 1 at velocity 100.
  var strength: Double { Double(velocity) / 100 }
  /// A loudness that grows with the velocity as on most instruments: 1 at 100, 1.5 at 127.
  var gain: Float { Float(strength * (0.3 + 0.7 * strength)) }
  /// A harder note is a brighter one: 0.4 to 1.16.
  var brightness: Double { 0.4 + 0.6 * strength }
}

/// The advance of a phase in 2⁻³² of a turn a sample.
func phaseStep(hertz: Double) -> UInt32 { UInt32(min(0.499, hertz / 48_000) * 4_294_967_296) }
