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

  /// The gain with which equally high velocities sound about equally loud.
  var level: Double {
    switch self {
    case .pluck, .bell, .electricPiano, .marimba, .brass, .flute, .bass, .drums: 1
    case .saw, .square: 0.6
    case .triangle: 0.9
    case .pad, .strings, .choir: 0.7
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
