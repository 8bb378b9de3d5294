/// Where a melody lies, whatever the key: MIDI pitches to steps of a scale and back.
package struct Register: Equatable, Sendable {
  /// The MIDI pitch of step 0, a tonic.
  package let tonic: Int
  /// The step that is about at the pitch which was asked for: 0 to 6.
  package let home: Int

  init(_ key: Key, around pitch: Int) {
    tonic = key.tonic(notAbove: pitch)
    // Seven steps in twelve semitones.
    home = ((pitch - tonic) * 7 + 6) / 12
  }

  package func pitch(of step: Int, in scale: Scale) -> Int { tonic + scale.semitones(atStep: step) }
}
