import AudioEngineCore
import WireProtocol

/// Scores for the tests of the synthesis.
enum SynthesisScores {
  static let pitched = Score.Instrument.allCases.filter { $0 != .drums }

  /// One voice without effects.
  static func solo(
    _ instrument: Score.Instrument, _ notes: [(start: Int, length: Int, pitch: Int, velocity: Int)],
    length: Int,
    reverb: Double = 0
  ) -> Score {
    Score(
      seed: 7, beat: 24_000, length: length,
      voices: [Score.Voice(role: .melody, instrument: instrument, reverb: reverb)],
      notes: notes.map {
        Score.Note(voice: 0, start: $0.start, length: $0.length, pitch: $0.pitch, velocity: $0.velocity)
      })
  }

  /// All instruments and all effects, 12 notes a second, for 6 s: one voice an instrument.
  static let ensemble: Score = {
    let instruments = Score.Instrument.allCases
    let roles = Score.Role.allCases
    let voices = instruments.enumerated().map { index, instrument in
      Score.Voice(
        role: instrument == .drums ? .percussion : roles[index % 3], instrument: instrument, gain: 0.6,
        pan: Double(index % 5) / 2 - 1, reverb: 0.3, delay: index % 3 == 0 ? 0.4 : 0,
        chorus: index % 4 == 0 ? 0.5 : 0, cutoffHertz: index == 6 ? 900 : nil)
    }
    let scale = [0, 2, 4, 7, 9]
    let drums = [36, 42, 38, 46, 39, 49, 56, 70, 75]
    let notes = (0..<60).map { index in
      let voice = index % instruments.count
      let pitch = instruments[voice] == .drums ? drums[index % 9] : 45 + scale[index % 5] + 12 * (index % 4)
      return Score.Note(
        voice: voice, start: index * 4_001, length: 9_000 + index * 300, pitch: pitch, velocity: 60 + index)
    }
    return Score(
      title: "Ensemble", seed: 42, beat: 24_000, length: 288_000, voices: voices, notes: notes)
  }()

  /// Four voices that never meet twice.
  static let bed: Score = {
    let instruments: [Score.Instrument] = [.pad, .choir, .bell, .pluck]
    let voices = instruments.enumerated().map { index, instrument in
      Score.Voice(role: .bed, instrument: instrument, gain: 0.5, reverb: 0.4, loop: 61_007 + 20_011 * index)
    }
    let notes = (0..<8).map { index in
      Score.Note(voice: index % 4, start: index * 7_000, length: 30_000, pitch: 45 + 5 * index, velocity: 70)
    }
    return Score(seed: 3, beat: 30_000, length: nil, voices: voices, notes: notes)
  }()

  /// - Parameter block: samples a call, by turns.
  static func render(_ score: Score, count: Int? = nil, from start: Int = 0, blocks: [Int] = [4_800])
    -> [Float]
  {
    var renderer = ScoreRenderer(score, startingAt: start)
    var samples: [Float] = []
    let end = start + (count ?? score.length ?? 0)
    var turn = 0
    while renderer.position < end {
      renderer.render(min(blocks[turn % blocks.count], end - renderer.position), into: &samples)
      turn += 1
    }
    return samples
  }
}

extension [Float] {
  /// Of a stereo sound, one side.
  func channel(_ index: Int) -> [Float] { stride(from: index, to: count, by: 2).map { self[$0] } }
  var peak: Float { reduce(0) { Swift.max($0, $1.magnitude) } }
  var power: Double { reduce(0) { $0 + Double($1) * Double($1) } / Double(Swift.max(1, count)) }
}
