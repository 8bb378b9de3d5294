import AudioEngineCore
import Glibc
import Testing

/// Sound at the joints, as a listener's decoder gives it: encoded by the engine's own encoder, decoded by
/// one decoder across the splice.
@Suite struct SpliceTests {
  private static let frame = 960
  private static let amplitude: Float = 0.5

  /// Packets of a tone, the same in both channels.
  private func tone(_ frequency: Double, gain: Float = 1, frames: Int = 40) throws -> [[UInt8]] {
    let samples = (0..<frames * Self.frame).map { index in
      gain * Self.amplitude * Float(sin(2 * .pi * frequency * Double(index) / 48_000))
    }
    return try SpliceSound.encode(samples)
  }

  private func side(_ packets: [[UInt8]], at place: Int) -> Splice.Side {
    Splice.Side(packets: Array(packets[(place - 6)..<(place + 5)]), spliceIndex: 6)
  }

  private func largestStep(_ sound: ArraySlice<Float>) -> Float {
    zip(sound, sound.dropFirst()).map { abs($1 - $0) }.max() ?? 0
  }

  /// The largest step of a tone itself, with room for what the codec adds.
  private func allowed(_ frequency: Double) -> Float {
    Self.amplitude * Float(2 * sin(.pi * frequency / 48_000)) * 1.15 + 0.004
  }

  @Test(arguments: [60.0, 220, 997, 3_000]) func `a fade out ends in silence without a step`(
    frequency: Double
  ) throws {
    let packets = try tone(frequency)
    let faded = try Splice(outgoing: side(packets, at: 20), incoming: nil).render()
    #expect(faded.count == 1)
    let heard = try SpliceSound.decode(packets[..<20] + faded)
    #expect(largestStep(heard[(10 * Self.frame)...]) < allowed(frequency))
    // It was loud before, and is silent at the end.
    #expect(heard[(18 * Self.frame)..<(20 * Self.frame)].map(abs).max()! > 0.4)
    #expect(heard.suffix(100).map(abs).max()! < 0.02)
  }

  @Test(arguments: [60.0, 220, 997, 3_000])
  func `a fade in begins in silence and goes over into the timeline's packets`(
    frequency: Double
  ) throws {
    let packets = try tone(frequency)
    let fading = try Splice(outgoing: nil, incoming: side(packets, at: 20)).render()
    #expect(fading.count == 4)
    let heard = try SpliceSound.decode(fading + packets[24...])
    #expect(heard.prefix(48).map(abs).max()! < 0.02)
    #expect(largestStep(heard[...]) < allowed(frequency))
    // From the second packet on it is what it would have been.
    let whole = try SpliceSound.decode(packets[...])
    let difference = zip(heard.dropFirst(Self.frame), whole.dropFirst(21 * Self.frame)).map { abs($0 - $1) }
      .max()!
    #expect(difference < 0.05)
  }

  @Test(arguments: [60.0, 220, 997, 3_000], [Float(0.1), 0.5, 1.6])
  func `another volume comes without a step`(frequency: Double, gain: Float) throws {
    let before = try tone(frequency)
    let after = try tone(frequency, gain: gain)
    let joint = try Splice(outgoing: side(before, at: 20), incoming: side(after, at: 20)).render()
    let heard = try SpliceSound.decode(before[..<20] + joint + after[24...])
    #expect(largestStep(heard[(10 * Self.frame)...]) < allowed(frequency) * max(1, gain) * 1.2)
    let level = heard[(30 * Self.frame)...].map(abs).max()!
    #expect(abs(level - gain * Self.amplitude) < 0.02)
  }

  @Test func `a jump between two tones has no step`() throws {
    let before = try tone(440)
    let after = try tone(523)
    let out = try Splice(outgoing: side(before, at: 20), incoming: nil).render()
    let into = try Splice(outgoing: nil, incoming: side(after, at: 13)).render()
    let heard = try SpliceSound.decode(before[..<20] + out + into + after[17...])
    #expect(largestStep(heard[(10 * Self.frame)...]) < allowed(523))
  }

  @Test func `a renderer that is used again gives the same packets`() throws {
    let (before, after) = (try tone(440), try tone(523))
    let splices = [
      Splice(outgoing: side(before, at: 20), incoming: nil),
      Splice(outgoing: nil, incoming: side(after, at: 13)),
      Splice(outgoing: side(before, at: 9), incoming: side(after, at: 25)),
    ]
    let renderer = try SpliceRenderer()
    for splice in splices + splices.reversed() {
      renderer.begin(splice)
      let packets = try (0..<splice.packetCount).map { _ in try renderer.next() }
      #expect(try packets == splice.render())
    }
  }

  @Test func `what is no packet is concealed`() throws {
    let packets = [[UInt8]](repeating: [0xFF, 0xFF, 0xFF], count: 7)
    let joint = try Splice(
      outgoing: .init(packets: packets, spliceIndex: 4), incoming: .init(packets: [], spliceIndex: 0)
    ).render()
    #expect(joint.count == 4)
    #expect(try SpliceSound.decode(joint[...]).allSatisfy { abs($0) < 0.01 })
  }
}

/// The engine's own encoding and a listener's decoding, for looking at splices.
private enum SpliceSound {
  /// Mono samples, in both channels, to packets.
  static func encode(_ samples: [Float]) throws -> [[UInt8]] {
    var encoder = try OpusEncoder(bitsPerSecond: 128_000, complexity: 10)
    var buffer = [UInt8](repeating: 0, count: 1_276)
    return try stride(from: 0, to: samples.count, by: 960).map {
      start in
      let frame = samples[start..<start + 960].flatMap { [$0, $0] }
      let count = try buffer.withUnsafeMutableBufferPointer { buffer in
        try encoder.encode(frame, into: buffer)
      }
      return Array(buffer[..<count])
    }
  }

  /// Packets to the left channel.
  static func decode(_ packets: ArraySlice<[UInt8]>) throws -> [Float] {
    var decoder = try OpusDecoder()
    var frame = [Float](repeating: 0, count: 1_920)
    return packets.flatMap { packet in
      frame.withUnsafeMutableBufferPointer { decoder.decode(packet, into: $0) }
      return stride(from: 0, to: 1_920, by: 2).map { frame[$0] }
    }
  }
}
