/// A piece as notes, and the room it sounds in.
struct SampleScore {
  struct Note {
    enum Instrument { case string, voice }

    var instrument: Instrument
    var startBeat: Double
    var beats: Double
    /// MIDI: 69 is the A of 440 Hz.
    var pitch: Int
    /// A linear gain.
    var level: Double
    /// From −1, left, to 1, right.
    var pan: Double
  }

  var title: String
  var beatsPerMinute: Double
  var durationSeconds: Double
  /// How much of the room is heard beside the instruments.
  var reverbLevel: Double
  /// Of the generator behind plucks, detuning and breath.
  var seed: UInt64
  var notes: [Note]
}

extension SampleScore {
  /// One voice or string that plays note after note: pitch and length in beats, pitch 0 being a rest.
  private static func line(
    _ instrument: Note.Instrument, from startBeat: Double, level: Double, pan: Double,
    _ steps: [(pitch: Int, beats: Double)]
  ) -> [Note] {
    var beat = startBeat
    return steps.compactMap { step in
      defer { beat += step.beats }
      guard step.pitch > 0 else { return nil }
      return Note(
        instrument: instrument, startBeat: beat, beats: step.beats, pitch: step.pitch, level: level, pan: pan)
    }
  }

  /// Twelve bars in D for plucked strings: broken chords, and above them a tune that enters with the third bar.
  static var versicle: SampleScore {
    // Bass, then the chord upwards: D, Bm7, G, A | D, F♯m, G, A | Bm7, G, A7.
    let bars = [
      [38, 50, 57, 62, 66], [35, 50, 54, 57, 62], [43, 50, 55, 59, 62], [45, 52, 57, 61, 64],
      [38, 50, 57, 62, 66], [42, 49, 57, 61, 66], [43, 50, 55, 59, 62], [45, 52, 57, 61, 64],
      [35, 50, 54, 57, 62], [43, 50, 55, 59, 62], [45, 52, 55, 61, 64],
    ]
    var notes: [Note] = []
    for (bar, chord) in bars.enumerated() {
      for (eighth, step) in [0, 1, 2, 3, 4, 3, 2, 3].enumerated() {
        notes.append(
          Note(
            instrument: .string, startBeat: Double(bar) * 4 + Double(eighth) / 2, beats: 2,
            pitch: chord[step], level: step == 0 ? 0.75 : 0.42, pan: step == 0 ? 0 : Double(step) * 0.3 - 0.75
          ))
      }
    }
    // The last chord, rolled.
    for (index, pitch) in [38, 50, 57, 62, 66, 69, 74].enumerated() {
      notes.append(
        Note(
          instrument: .string, startBeat: 44 + Double(index) * 0.16, beats: 8, pitch: pitch, level: 0.6,
          pan: Double(index) * 0.2 - 0.6))
    }
    notes += line(
      .string, from: 8, level: 0.8, pan: 0.2,
      [
        (71, 1.5), (69, 0.5), (67, 1), (71, 1), (73, 1), (76, 1), (73, 2), (74, 1.5), (76, 0.5), (78, 2),
        (76, 1), (73, 1), (69, 2), (71, 1.5), (73, 0.5), (74, 1), (71, 1), (69, 2), (64, 1), (69, 1),
        (78, 1), (76, 1), (74, 1), (69, 1), (71, 2), (74, 1), (76, 1), (73, 1), (74, 0.5), (73, 0.5), (69, 2),
      ])
    return SampleScore(
      title: "Versicle", beatsPerMinute: 80, durationSeconds: 41, reverbLevel: 0.28, seed: 0x5645_5253,
      notes: notes)
  }

  /// Nine chords in E minor and G for four soft voices; at the end the strings of the versicle answer once.
  static var response: SampleScore {
    var notes = line(
      .voice, from: 0, level: 0.9, pan: 0.35,
      [
        (67, 4), (67, 2), (64, 2), (71, 3), (69, 1), (69, 2), (66, 2), (69, 2), (72, 2), (71, 2), (67, 2),
        (67, 2), (72, 2), (74, 2), (69, 2), (71, 6),
      ])
    notes += line(
      .voice, from: 0, level: 0.75, pan: -0.35,
      [(64, 4), (60, 4), (62, 4), (62, 4), (64, 4), (64, 4), (64, 4), (67, 2), (66, 2), (67, 6)])
    notes += line(
      .voice, from: 0, level: 0.8, pan: 0.1,
      [
        (59, 4), (55, 4), (55, 2), (59, 2), (57, 4), (55, 2), (57, 2), (55, 4), (55, 2), (60, 2), (57, 4),
        (62, 6),
      ])
    notes += line(
      .voice, from: 0, level: 0.85, pan: 0,
      [(40, 4), (48, 4), (43, 4), (42, 2), (50, 2), (45, 4), (52, 4), (48, 4), (50, 4), (43, 6)])
    notes += line(.string, from: 34, level: 0.35, pan: 0.5, [(67, 0.5), (71, 0.5), (74, 0.5), (79, 4)])
    return SampleScore(
      title: "Response", beatsPerMinute: 63, durationSeconds: 42, reverbLevel: 0.5, seed: 0x5245_5350,
      notes: notes)
  }
}
