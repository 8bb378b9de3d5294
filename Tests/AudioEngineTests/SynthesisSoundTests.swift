import AudioEngineCore
import Glibc
import Testing
import WireProtocol

/// What the instruments and the room sound like, measured.
struct SynthesisSoundTests {
  private static func hertz(_ pitch: Int) -> Double { 440 * exp2(Double(pitch - 69) / 12) }

  @Test(arguments: SynthesisScores.pitched)
  func `every instrument is in tune`(instrument: Score.Instrument) {
    for pitch in [36, 60, 96] {
      let score = SynthesisScores.solo(instrument, [(0, 140_000, pitch, 100)], length: 144_000)
      let sound = SynthesisScores.render(score)
      // Both sides: of several oscillators side by side, each side hears one more than the others.
      let middle = zip(sound.channel(0), sound.channel(1)).map { $0 + $1 }[4_800...]
      let cents = 1_200 * log2(Spectrum(middle).centre(near: Self.hertz(pitch)) / Self.hertz(pitch))
      #expect(abs(cents) < 3, "\(instrument.rawValue) at \(pitch): \(cents) cents")
    }
  }

  /// A folded harmonic would lie between those that belong to the note. Breath and bow are no harmonics, nor are the
  /// bell's and the bar's own partials.
  @Test(arguments: [Score.Instrument.pluck, .electricPiano, .brass, .saw, .square, .triangle, .bass, .pad])
  func `nothing is folded back from above the Nyquist frequency`(instrument: Score.Instrument) {
    for pitch in [81, 93, 105] {
      let score = SynthesisScores.solo(instrument, [(0, 90_000, pitch, 127)], length: 96_000)
      let note = Self.hertz(pitch)
      let share = Spectrum(SynthesisScores.render(score).channel(0)[4_800...]).share { frequency in
        let nearest = (frequency / note).rounded() * note
        return frequency > 30 && abs(frequency - nearest) > max(25, 0.025 * nearest)
      }
      #expect(10 * log10(share) < -55, "\(instrument.rawValue) at \(pitch): \(10 * log10(share)) dB")
    }
  }

  @Test func `instruments are equally loud, and six of them leave room above`() {
    var levels: [Double] = []
    for instrument in SynthesisScores.pitched {
      let base = instrument == .bass ? 36 : 60
      let notes = [0, 4, 7, 12].enumerated().map {
        (start: $0 * 48_000, length: 46_000, pitch: base + $1, velocity: 100)
      }
      let power = SynthesisScores.render(SynthesisScores.solo(instrument, notes, length: 192_000)).power
      levels.append(10 * log10(power))
    }
    // Equal to the ear, which hears lows less: in power they differ.
    #expect(levels.max()! - levels.min()! < 8, "\(levels)")
    let peak = SynthesisScores.render(SynthesisScores.ensemble).peak
    #expect(20 * log10(peak) > -12 && 20 * log10(peak) < -1, "\(20 * log10(peak)) dBFS")
  }

  @Test(arguments: Score.Instrument.allCases)
  func `notes begin and end without a click and leave nothing constant behind`(instrument: Score.Instrument) {
    let pitch = instrument == .drums ? 36 : 60
    let score = SynthesisScores.solo(instrument, [(12_000, 24_000, pitch, 100)], length: 240_000)
    let left = SynthesisScores.render(score).channel(0)
    #expect(left[..<12_000].map { $0 }.peak == 0 || left[..<12_000].map { $0 }.peak < 1e-9, "silent before")
    #expect(abs(left[11_999] - left[12_001]) < 0.02, "no step at its beginning")
    // After it is let go, steps only get smaller.
    let steps = zip(left, left.dropFirst()).map { ($0 - $1).magnitude }
    let held = steps[24_000..<36_000].max()!
    #expect(steps[36_000..<60_000].max()! <= max(held * 1.1, 1e-3))
    #expect(abs(left.reduce(0, +) / Float(left.count)) < 1e-4)
    #expect(left[200_000...].map { $0 }.peak < 1e-3, "it has died away")
  }

  @Test(arguments: [0.5, 1.2, 2.5, 6.0])
  func `the room dies away in the time asked for`(seconds: Double) {
    let length = Int((seconds + 1) * 48_000)
    var score = SynthesisScores.solo(.drums, [(0, 100, 38, 127)], length: length + 4_800, reverb: 1)
    score.effects.reverbSeconds = seconds
    var dry = score
    dry.voices[0].reverb = 0
    let wet = zip(SynthesisScores.render(score), SynthesisScores.render(dry)).map { $0 - $1 }
    // Schroeder's backward integration: from 5 to 30 dB below the beginning.
    var rest = 0.0
    var energies = wet.channel(0).prefix(length).reversed().map { sample in
      rest += Double(sample) * Double(sample)
      return rest
    }
    energies.reverse()
    let decibels = energies.map { 10 * log10($0 / energies[0]) }
    let from = decibels.firstIndex { $0 < -5 }!
    let until = decibels.firstIndex { $0 < -30 }!
    let measured = Double(until - from) / 48_000 * 60 / 25
    #expect(abs(measured / seconds - 1) < 0.2, "\(measured) s")
  }

  @Test func `delays come back when and where they should`() {
    var score = SynthesisScores.solo(.drums, [(0, 100, 75, 100)], length: 96_000)
    score.voices[0].delay = 1
    score.effects.delaySamples = 20_000
    score.effects.delayFeedback = 0.5
    let sound = SynthesisScores.render(score)
    let (left, right) = (sound.channel(0), sound.channel(1))
    func power(_ channel: [Float], _ start: Int) -> Double { channel[start..<start + 2_000].map { $0 }.power }
    #expect(power(left, 20_000) > 100 * power(right, 20_000), "first on the left")
    #expect(power(right, 40_000) > 100 * power(left, 40_000), "then on the right")
    let ratio = (power(right, 40_000) / power(left, 20_000)).squareRoot()
    #expect(ratio > 0.3 && ratio < 0.52, "half as loud, and a little duller: \(ratio)")
  }
}
