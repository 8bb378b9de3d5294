import WireProtocol

/// The note that a repository's music begins from and comes home to: the repository's own forever, since it comes
/// from its ID alone.
package struct Key: Equatable, Sendable {
  /// Semitones above C.
  package let pitchClass: Int

  package init(of repository: SessionID) {
    var generator = SeededGenerator("key:\(repository)")
    pitchClass = generator.below(12)
  }

  init(pitchClass: Int) {
    self.pitchClass = pitchClass
  }

  package var name: String { Self.names[pitchClass] }

  /// In flats, but for F♯.
  private static let names = ["C", "Db", "D", "Eb", "E", "F", "F#", "G", "Ab", "A", "Bb", "B"]

  /// The tonic that is nearest to a MIDI pitch and not above it.
  func tonic(notAbove pitch: Int) -> Int {
    pitch - (pitch - pitchClass).quotientAndRemainder(floorDividingBy: 12).remainder
  }
}
