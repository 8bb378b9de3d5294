import AudioEngineCore
import Glibc
import Testing

/// What the transcode pipeline does with a limiter: samples come in pieces, are taken in packets, and the end
/// is followed by one block of silence.
private func limit(_ samples: [Float], volume: Float = 1, piece: Int = 2_304) -> [Float] {
  var limiter = Limiter(volume: volume)
  var pending: [Float] = []
  var done: [Float] = []
  let packet = 1_920
  var rest = samples[...]
  var isEnded = false
  while !isEnded {
    pending += rest.prefix(piece)
    rest = rest.dropFirst(piece)
    if rest.isEmpty {
      let missing = (packet - (done.count + pending.count) % packet) % packet
      pending += [Float](repeating: 0, count: missing + Limiter.blockValueCount)
      isEnded = true
    }
    limiter.advance(&pending)
    let whole = limiter.finishedCount / packet * packet
    done += pending[..<whole]
    pending.removeFirst(whole)
    limiter.removeFirst(whole)
  }
  return Array(done[..<samples.count])
}

private func stereo(seconds: Double, _ value: (Double) -> (Float, Float)) -> [Float] {
  (0..<Int(seconds * 48_000)).flatMap { sample in
    let (left, right) = value(Double(sample) / 48_000)
    return [left, right]
  }
}

private func sine(_ frequency: Double, amplitude: Float, seconds: Double = 1) -> [Float] {
  stereo(seconds: seconds) { time in
    let value = amplitude * Float(sin(2 * .pi * frequency * time))
    return (value, value)
  }
}

private func left(_ samples: [Float]) -> [Float] {
  stride(from: 0, to: samples.count, by: 2).map { samples[$0] }
}

/// The amplitude of one frequency in whole periods of it, by correlation.
private func amplitude(_ samples: ArraySlice<Float>, _ frequency: Double) -> Double {
  var (real, imaginary) = (0.0, 0.0)
  for (index, value) in samples.enumerated() {
    let phase = 2 * .pi * frequency * Double(index) / 48_000
    real += Double(value) * cos(phase)
    imaginary += Double(value) * sin(phase)
  }
  return 2 * (real * real + imaginary * imaginary).squareRoot() / Double(samples.count)
}

private func peak(_ samples: [Float]) -> Float { samples.map(\.magnitude).max() ?? 0 }

@Suite struct LimiterTests {
  @Test(arguments: [1, 240, 1_920, 2_304, 100_000])
  func `below full scale nothing is changed, however the samples come`(piece: Int) {
    var generator = SystemRandomNumberGenerator()
    var samples = (0..<40_001 * 2).map { _ in Float.random(in: -1...1, using: &generator) }
    samples[1_000] = 1
    samples[5_001] = -1
    samples[9_000] = -0.0
    let limited = limit(samples, piece: piece)
    #expect(limited.map(\.bitPattern) == samples.map(\.bitPattern))
  }

  @Test func `silence stays silence`() {
    let silence = [Float](repeating: 0, count: 20_000)
    #expect(limit(silence, volume: 10) == silence)
  }

  @Test func `a volume below full scale is a plain product`() {
    let samples = sine(440, amplitude: 0.25)
    #expect(limit(samples, volume: 3) == samples.map { $0 * 3 })
  }

  /// 12 dB over, from the first sample on. A hard clip would have a third harmonic at −13 dB.
  @Test(arguments: [(100.0, 0.005), (440, 0.001), (1_000, 0.001), (6_000, 0.001)])
  func `a sine that is too loud comes out as a sine`(frequency: Double, allowed: Double) {
    let limited = left(limit(sine(frequency, amplitude: 4)))
    #expect(peak(limited) <= 1)
    // Whole periods, from 0.5 s on.
    let settled = limited[24_000...]
    let fundamental = amplitude(settled, frequency)
    #expect(fundamental > 0.9)
    let harmonics = (2...5).map { Double($0) * frequency }.filter { $0 < 24_000 }
      .map { pow(amplitude(settled, $0) / fundamental, 2) }
    #expect(harmonics.reduce(0, +).squareRoot() < allowed)
  }

  @Test func `no step is larger than the sound's own`() {
    // A quiet tone with a loud passage in the middle.
    let samples = stereo(seconds: 1.5) { time in
      let value = Float(sin(2 * .pi * 300 * time)) * ((0.5..<0.7).contains(time) ? 5 : 0.5)
      return (value, value)
    }
    let limited = left(limit(samples))
    #expect(peak(limited) <= 1)
    let steps = zip(limited, limited.dropFirst()).map { ($1 - $0).magnitude }
    // A full-scale tone of 300 Hz has steps of 0.0393.
    #expect(steps.max()! < 0.045)
    // A second after the passage at most, nothing is held down any more.
    #expect(limited[60_000...].elementsEqual(left(samples)[60_000...]))
  }

  @Test func `an impulse is lowered, and what is around it with it, for a moment`() {
    var samples = sine(440, amplitude: 0.5, seconds: 2)
    samples[24_000] = 8
    samples[24_001] = -8
    let limited = limit(samples)
    #expect(peak(limited) <= 1)
    #expect(limited[24_000] > 0.99)
    #expect(limited[24_001] < -0.99)
    #expect(limited[..<23_520].elementsEqual(samples[..<23_520]))
    // 18 dB at 60 dB a second.
    #expect(limited[(24_000 + 48_000)...].elementsEqual(samples[(24_000 + 48_000)...]))
  }

  @Test func `both channels have one gain`() {
    let samples = stereo(seconds: 0.5) { time in
      let value = Float(sin(2 * .pi * 500 * time))
      return (value * 4, value * 0.5)
    }
    let limited = limit(samples)
    for index in stride(from: 0, to: limited.count, by: 2) where limited[index].magnitude > 0.01 {
      #expect((limited[index + 1] / limited[index] - 0.125).magnitude < 1e-4)
    }
  }

  @Test func `what is no number does no harm to what follows`() {
    var samples = sine(440, amplitude: 0.5)
    samples[10_000] = .nan
    samples[10_101] = .infinity
    samples[20_000] = -.infinity
    samples[30_001] = 1e30
    samples[40_000] = -.nan
    samples[50_000] = .signalingNaN
    let limited = limit(samples)
    #expect(limited.allSatisfy { $0.magnitude <= 1 })
    #expect(limited[10_000] == 0)
    #expect(limited[10_101] == 1)
    #expect(limited[20_000] == -1)
    #expect(limited[30_001] == 1)
    #expect(limited[40_000] == 0)
    let damaged: Set = [10_000, 10_101, 20_000, 30_001, 40_000, 50_000]
    #expect(limited.indices.allSatisfy { damaged.contains($0) || limited[$0] == samples[$0] })
  }

  @Test func `a volume that makes infinity of the largest numbers is no exception`() {
    let limited = limit([Float](repeating: .greatestFiniteMagnitude, count: 4_800), volume: 10)
    #expect(limited.allSatisfy { $0 == 1 })
  }

  @Test func `samples of integers in a float file are brought down to full scale`() {
    let limited = left(limit(sine(440, amplitude: 32_768)))
    #expect(peak(limited) <= 1)
    #expect(amplitude(limited[24_000...], 440) > 0.9)
  }
}
