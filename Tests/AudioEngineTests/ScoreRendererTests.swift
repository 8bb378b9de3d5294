import AudioEngineCore
import Crypto
import Testing
import WireProtocol

struct ScoreRendererTests {
  private static func hash(_ samples: [Float]) -> String {
    SHA256.hash(data: PCM16.bytes(of: samples)).prefix(8).map { String($0, radix: 16) }.joined(
      separator: " ")
  }

  /// The same bytes on every machine: where a hash changes, the sound of every repository does. A change that is
  /// meant takes the new one over and says so in the change log.
  @Test func `the sound of every instrument and of all together is known to the byte`() {
    #expect(Self.hash(SynthesisScores.render(SynthesisScores.ensemble)) == "d4 9 60 33 70 6a 6c 6b")
    let bed = SynthesisScores.render(SynthesisScores.bed, count: 480_000)
    #expect(Self.hash(bed) == "83 91 7 c9 e 45 23 b4")
  }

  @Test(arguments: [[1_920], [960], [1, 63, 64, 65, 7], [288_000]])
  func `the blocks' lengths change no sample`(blocks: [Int]) {
    let whole = SynthesisScores.render(SynthesisScores.ensemble)
    let cut = SynthesisScores.render(SynthesisScores.ensemble, blocks: blocks)
    #expect(cut.count == whole.count && zip(cut, whole).first { $0 != $1 } == nil)
  }

  @Test(arguments: [0, 48_000, 71_234])
  func `a score that joins sounds as if it had been part of the other from the beginning`(start: Int) {
    var guest = SynthesisScores.ensemble
    guest.seed = SynthesisScores.bed.seed
    var merged = SynthesisScores.bed
    merged.voices += guest.voices
    merged.notes += guest.notes.map { note in
      var note = note
      note.voice += SynthesisScores.bed.voices.count
      note.start += start
      return note
    }
    let expected = SynthesisScores.render(merged, count: 480_000)
    var renderer = ScoreRenderer(SynthesisScores.bed)
    var samples: [Float] = []
    renderer.render(start, into: &samples)
    renderer.add(guest, at: start)
    renderer.render(480_000 - start, into: &samples)
    #expect(samples.count == expected.count && zip(samples, expected).first { $0 != $1 } == nil)
  }

  @Test func `an endless score goes on for hours, and begins anywhere`() {
    let hours = 3 * 3_600 * ScoreLimits.sampleRate
    let late = SynthesisScores.render(SynthesisScores.bed, count: 240_000, from: hours + 12_345)
    #expect(late.power > 1e-6, "it sounds")
    #expect(late.allSatisfy { $0.magnitude <= 1 })
    // Loops of 1.27 to 2.5 s: some note of each begins within these five seconds, at its own place.
    let other = SynthesisScores.render(SynthesisScores.bed, count: 240_000, from: hours + 12_345 + 61_007)
    #expect(late != other, "the loops do not come together")
  }

  @Test func `a muted role goes without a click, and comes back`() {
    let score = SynthesisScores.solo(.flute, [(0, 480_000, 69, 100)], length: 480_000)
    var renderer = ScoreRenderer(score)
    var samples: [Float] = []
    renderer.render(48_100, into: &samples)
    renderer.mute([.melody])
    renderer.render(48_100, into: &samples)
    renderer.mute([])
    renderer.render(48_100, into: &samples)
    let left = samples.channel(0)
    #expect(left[24_000..<48_100].map { $0 }.power > 1e-5)
    #expect(left[50_000..<96_200].map { $0 }.peak < 2e-5, "silent 20 ms later, 94 dB down")
    #expect(left[100_000...].map { $0 }.power > 1e-5)
    // A tone of 440 Hz and its breath change by no more than this from sample to sample.
    let steady = largestStep(left[24_000..<48_000])
    #expect(largestStep(left[48_000..<50_000]) <= steady * 1.1)
    #expect(largestStep(left[96_000..<98_000]) <= steady * 1.1)
  }

  @Test func `a gain is taken within 20 ms, and the limiter keeps what is too loud within full scale`() {
    let score = SynthesisScores.solo(.triangle, [(0, 480_000, 57, 100)], length: 480_000)
    let plain = SynthesisScores.render(score, count: 96_000)
    var renderer = ScoreRenderer(score)
    var samples: [Float] = []
    renderer.render(48_000, into: &samples)
    renderer.setGain(0.5)
    renderer.render(48_000, into: &samples)
    #expect(samples[..<96_000] == plain[..<96_000])
    for index in stride(from: 100_000, to: 192_000, by: 997) {
      #expect(abs(samples[index] - 0.5 * plain[index]) < 2e-5)
    }
    #expect(
      largestStep(samples.channel(0)[47_900..<49_100]) <= largestStep(plain.channel(0)[24_000..<48_000]))
    renderer.setGain(10)
    samples = []
    renderer.render(96_000, into: &samples)
    #expect(samples.peak <= 1 && samples.peak > 0.7)
  }

  @Test func `what is above the polyphony takes the first notes' places without a click, and finishes`() {
    // A hundred long notes, one every 10 ms.
    let notes = (0..<100).map { (start: 480 * $0, length: 96_000, pitch: 40 + $0 % 40, velocity: 60) }
    let samples = SynthesisScores.render(SynthesisScores.solo(.marimba, notes, length: 144_000))
    #expect(samples.peak <= 1)
    // The first 64 begin as the others do.
    let left = samples.channel(0)
    let filling = largestStep(left[0..<30_000])
    #expect(largestStep(left[31_000..<48_000]) <= filling * 1.2)
  }

  @Test(arguments: Score.Instrument.allCases)
  func `hostile notes stay finite and within full scale`(instrument: Score.Instrument) {
    var notes: [(start: Int, length: Int, pitch: Int, velocity: Int)] = []
    for index in 0..<4_000 {
      // A third at once, a third one after the other, a third of one sample.
      let start = index % 3 == 0 ? 100 : index * 7
      notes.append((start, index % 3 == 2 ? 1 : 20_000, index % 2 == 0 ? 0 : 127, 127))
    }
    for cutoff in [40.0, 20_000] {
      var score = SynthesisScores.solo(instrument, notes, length: 48_000, reverb: 1)
      score.effects.reverbSeconds = 10
      score.effects.delaySamples = 480
      score.effects.delayFeedback = 0.9
      score.voices[0].cutoffHertz = cutoff
      score.voices[0].gain = 2
      score.voices[0].delay = 1
      score.voices[0].chorus = 1
      let samples = SynthesisScores.render(score)
      #expect(samples.count == 96_000)
      #expect(samples.allSatisfy { $0.magnitude <= 1 }, "not a number is not less")
      #expect(samples[95_998].magnitude < 0.001 && samples[95_999].magnitude < 0.001, "the end is silent")
    }
  }

  private func largestStep(_ samples: ArraySlice<Float>) -> Float {
    zip(samples, samples.dropFirst()).reduce(0) { max($0, ($1.0 - $1.1).magnitude) }
  }
}
