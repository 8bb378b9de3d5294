import WireProtocol

/// What a composer knows of the engine's instruments.
extension Score.Instrument {
  /// Whether a note sounds as long as it is held.
  var isSustained: Bool {
    switch self {
    case .pad, .strings, .choir, .brass, .flute, .saw, .square, .triangle: true
    case .pluck, .bell, .electricPiano, .marimba, .bass, .drums: false
    }
  }

  /// Octaves by which it plays higher than written, where it sounds best.
  var octave: Int {
    switch self {
    case .bell: 1
    default: 0
    }
  }
}
