import WireProtocol

/// A demo track as it is written in this file: each line on a voice of its own, in beats.
private struct DemoScore {
  private let beat: Int
  private(set) var voices: [Score.Voice] = []
  private(set) var notes: [Score.Note] = []

  init(beatsPerMinute: Double) { beat = Int(60 * Double(ScoreLimits.sampleRate) / beatsPerMinute) }

  mutating func addVoice(
    _ role: Score.Role, _ instrument: Score.Instrument, gain: Double, pan: Double, reverb: Double
  ) -> Int {
    voices.append(Score.Voice(role: role, instrument: instrument, gain: gain, pan: pan, reverb: reverb))
    return voices.count - 1
  }

  mutating func add(_ pitch: Int, to voice: Int, at start: Double, beats: Double, velocity: Int = 96) {
    notes.append(
      Score.Note(
        voice: voice, start: Int(start * Double(beat)), length: Int(beats * Double(beat)), pitch: pitch,
        velocity: velocity))
  }

  /// Note after note: pitch and length in beats.
  mutating func add(_ steps: [(pitch: Int, beats: Double)], to voice: Int, from start: Double) {
    var position = start
    for step in steps {
      add(step.pitch, to: voice, at: position, beats: step.beats)
      position += step.beats
    }
  }

  func score(seed: Int, seconds: Int, reverbSeconds: Double) -> Score {
    var effects = Score.Effects()
    effects.reverbSeconds = reverbSeconds
    return Score(
      seed: seed, beat: beat, length: seconds * ScoreLimits.sampleRate, effects: effects,
      voices: voices, notes: notes)
  }
}

extension Score {
  /// Twelve bars in D for plucked strings: broken chords, and above them a tune that enters with the third bar.
  static var versicle: Score {
    var demo = DemoScore(beatsPerMinute: 80)
    let bass = demo.addVoice(.bass, .pluck, gain: 0.75, pan: 0, reverb: 0.25)
    let chord = [-0.45, -0.15, 0.15, 0.45].map {
      demo.addVoice(.harmony, .pluck, gain: 0.42, pan: $0, reverb: 0.3)
    }
    let tune = demo.addVoice(.melody, .pluck, gain: 0.8, pan: 0.2, reverb: 0.3)
    let strings = [bass] + chord
    // Bass, then the chord upwards: D, Bm7, G, A | D, F♯m, G, A | Bm7, G, A7.
    let bars = [
      [38, 50, 57, 62, 66], [35, 50, 54, 57, 62], [43, 50, 55, 59, 62], [45, 52, 57, 61, 64],
      [38, 50, 57, 62, 66], [42, 49, 57, 61, 66], [43, 50, 55, 59, 62], [45, 52, 57, 61, 64],
      [35, 50, 54, 57, 62], [43, 50, 55, 59, 62], [45, 52, 55, 61, 64],
    ]
    for (bar, pitches) in bars.enumerated() {
      for (eighth, step) in [0, 1, 2, 3, 4, 3, 2, 3].enumerated() {
        demo.add(
          pitches[step], to: strings[step], at: Double(bar) * 4 + Double(eighth) / 2, beats: 2)
      }
    }
    // The last chord, rolled.
    for (index, pitch) in [38, 50, 57, 62, 66, 69, 74].enumerated() {
      demo.add(pitch, to: strings[min(index, 4)], at: 44 + Double(index) * 0.16, beats: 8)
    }
    demo.add(
      [
        (71, 1.5), (69, 0.5), (67, 1), (71, 1), (73, 1), (76, 1), (73, 2), (74, 1.5), (76, 0.5), (78, 2),
        (76, 1), (73, 1), (69, 2), (71, 1.5), (73, 0.5), (74, 1), (71, 1), (69, 2), (64, 1), (69, 1),
        (78, 1), (76, 1), (74, 1), (69, 1), (71, 2), (74, 1), (76, 1), (73, 1), (74, 0.5), (73, 0.5), (69, 2),
      ], to: tune, from: 8)
    return demo.score(seed: 0x5645_5253, seconds: 41, reverbSeconds: 2.5)
  }

  /// Nine chords in E minor and G for four soft voices; at the end the strings of the versicle answer once.
  static var response: Score {
    var demo = DemoScore(beatsPerMinute: 63)
    let soprano = demo.addVoice(.melody, .choir, gain: 0.5, pan: 0.35, reverb: 0.5)
    let alto = demo.addVoice(.harmony, .choir, gain: 0.4, pan: -0.35, reverb: 0.5)
    let tenor = demo.addVoice(.harmony, .choir, gain: 0.45, pan: 0.1, reverb: 0.5)
    let bass = demo.addVoice(.bass, .choir, gain: 0.5, pan: 0, reverb: 0.5)
    let answer = demo.addVoice(.melody, .pluck, gain: 0.35, pan: 0.5, reverb: 0.5)
    demo.add(
      [
        (67, 4), (67, 2), (64, 2), (71, 3), (69, 1), (69, 2), (66, 2), (69, 2), (72, 2), (71, 2), (67, 2),
        (67, 2), (72, 2), (74, 2), (69, 2), (71, 6),
      ], to: soprano, from: 0)
    demo.add(
      [(64, 4), (60, 4), (62, 4), (62, 4), (64, 4), (64, 4), (64, 4), (67, 2), (66, 2), (67, 6)],
      to: alto, from: 0)
    demo.add(
      [
        (59, 4), (55, 4), (55, 2), (59, 2), (57, 4), (55, 2), (57, 2), (55, 4), (55, 2), (60, 2), (57, 4),
        (62, 6),
      ], to: tenor, from: 0)
    demo.add(
      [(40, 4), (48, 4), (43, 4), (42, 2), (50, 2), (45, 4), (52, 4), (48, 4), (50, 4), (43, 6)],
      to: bass, from: 0)
    demo.add([(67, 0.5), (71, 0.5), (74, 0.5), (79, 4)], to: answer, from: 34)
    return demo.score(seed: 0x5245_5350, seconds: 42, reverbSeconds: 4)
  }
}
