/// What a score may hold (`docs/wire-protocol.md`, "Scores").
public enum ScoreLimits {
  public static let sampleRate = 48_000
  public static let samplesPerMillisecond = sampleRate / 1_000
  /// Whole numbers that JSON keeps as they are (RFC 8259, section 6).
  public static let seedRange = 0...9_007_199_254_740_991
  /// 240 to 30 beats a minute.
  public static let beatRange = 12_000...96_000
  /// Two minutes: a rendering lies in memory whole.
  public static let lengthRange = 960...5_760_000
  /// Half a second to ten minutes.
  public static let loopRange = 24_000...28_800_000
  public static let voiceRange = 1...16
  public static let maximumNotes = 4_000
}

extension Score {
  /// - Throws: `invalid_command`, naming the field that is wrong.
  public func checked() throws(ErrorReport) -> Score {
    try Self.check(seed, in: ScoreLimits.seedRange, "seed")
    try Self.check(beat, in: ScoreLimits.beatRange, "beat")
    if let length { try Self.check(length, in: ScoreLimits.lengthRange, "length") }
    if let title, title.unicodeScalars.count > WireLimits.maximumTagScalarCount {
      throw .field("score.title", "has over \(WireLimits.maximumTagScalarCount) characters")
    }
    try Self.check(effects.reverbSeconds, in: 0.2...10, "effects.reverb_s")
    try Self.check(effects.delaySamples, in: 480...96_000, "effects.delay")
    try Self.check(effects.delayFeedback, in: 0...0.9, "effects.delay_feedback")
    try Self.check(effects.chorusHertz, in: 0.05...5, "effects.chorus_hz")
    try Self.check(voices.count, in: ScoreLimits.voiceRange, "voices' number")
    for (index, voice) in voices.enumerated() { try check(voice, index) }
    try Self.check(notes.count, in: 0...ScoreLimits.maximumNotes, "notes' number")
    for (index, note) in notes.enumerated() { try check(note, index) }
    return self
  }

  private func check(_ voice: Voice, _ index: Int) throws(ErrorReport) {
    let name = "voices[\(index)]"
    try Self.check(voice.gain, in: 0...2, "\(name).gain")
    try Self.check(voice.pan, in: -1...1, "\(name).pan")
    for (send, value) in [("reverb", voice.reverb), ("delay", voice.delay), ("chorus", voice.chorus)] {
      try Self.check(value, in: 0...1, "\(name).\(send)")
    }
    if let cutoff = voice.cutoffHertz { try Self.check(cutoff, in: 40...20_000, "\(name).cutoff_hz") }
    guard let loop = voice.loop else { return }
    guard length == nil else { throw .field("score.\(name).loop", "is for scores without a length") }
    try Self.check(loop, in: ScoreLimits.loopRange, "\(name).loop")
  }

  private func check(_ note: Note, _ index: Int) throws(ErrorReport) {
    let name = "notes[\(index)]"
    try Self.check(note.voice, in: 0...voices.count - 1, "\(name)'s voice")
    let end = voices[note.voice].loop ?? length ?? ScoreLimits.loopRange.upperBound
    try Self.check(note.start, in: 0...end - 1, "\(name)'s start")
    try Self.check(note.length, in: 1...ScoreLimits.lengthRange.upperBound, "\(name)'s length")
    try Self.check(note.pitch, in: 0...127, "\(name)'s pitch")
    try Self.check(note.velocity, in: 1...127, "\(name)'s velocity")
  }

  private static func check<Value: Comparable>(
    _ value: Value, in range: ClosedRange<Value>, _ name: String
  ) throws(ErrorReport) {
    guard range.contains(value) else {
      throw .field("score.\(name)", "is \(value), not \(range.lowerBound) to \(range.upperBound)")
    }
  }
}
