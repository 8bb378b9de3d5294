import Glibc
import WireProtocol

/// Joins two places of sound without a click: over 20 ms the one fades out and the other in.
///
/// Packets are encoded once for everybody, so a session that leaves a place, or comes to one, gets a packet or
/// two of its own at the joint: the sound on both sides is decoded as its listeners hear it, mixed, and
/// encoded again (`docs/decisions/0011-fades-by-splicing.md`).
package struct Splice: Sendable {
  /// The packets around a place.
  package struct Side: Sendable {
    /// Packets in order; those before the place let a decoder settle.
    package var packets: [[UInt8]]
    /// The first packet of `packets` that is replaced.
    package var spliceIndex: Int

    package init(packets: [[UInt8]], spliceIndex: Int) {
      self.packets = packets
      self.spliceIndex = spliceIndex
    }
  }

  /// Frames encoded before the joint, and not sent, so that encoder and listeners' decoders agree on the
  /// energies and the pitch that packets lean on; and as many that the decoders here settle in.
  private static let settlingFrames = 3
  /// Packets wanted before a place.
  package static let packetsBefore = 2 * settlingFrames
  /// Packets that stand where sound follows: the one that fades, and three after which the timeline's own can
  /// lean on them.
  static let joinedPackets = 4
  /// Packets wanted from a place on: the last gives the encoder its lookahead.
  package static let packetsFrom = joinedPackets + 1

  /// What is left; nil for silence.
  package var outgoing: Side?
  /// What begins; nil for silence.
  package var incoming: Side?

  package init(outgoing: Side?, incoming: Side?) {
    self.outgoing = outgoing
    self.incoming = incoming
  }

  private static let frame = OpusEncoder.frameSampleCount
  private static let channels = Resampler.channelCount
  private static let values = frame * channels
  /// The share of the incoming side, sample by sample, over the fade.
  private static let ramp: [Float] = (0..<frame).map { index in
    let turn: Double = .pi * (Double(index) + 0.5) / Double(frame)
    return Float(0.5 - 0.5 * cos(turn))
  }

  /// The packets that stand at the joint: one where sound fades out into silence, `joinedPackets` where sound
  /// follows.
  package func render() throws(ErrorReport) -> [[UInt8]] {
    var sound = try Self.decode(outgoing)
    let begins = try Self.decode(incoming)
    let joint = Self.settlingFrames * Self.values
    for index in joint..<sound.count {
      let share = index < joint + Self.values ? Self.ramp[(index - joint) / Self.channels] : 1
      sound[index] += share * (begins[index] - sound[index])
    }
    return try encode(sound, count: incoming == nil ? 1 : Self.joinedPackets)
  }

  /// A side's sound from the warm frames on; silence where there is none.
  private static func decode(_ side: Side?) throws(ErrorReport) -> [Float] {
    let frames = settlingFrames + packetsFrom
    var sound = [Float](repeating: 0, count: frames * values)
    guard let side else { return sound }
    var decoder = try OpusDecoder()
    var settling = [Float](repeating: 0, count: values)
    for (index, packet) in side.packets.enumerated() {
      let place = settlingFrames + index - side.spliceIndex
      if place < 0 {
        settling.withUnsafeMutableBufferPointer { decoder.decode(packet, into: $0) }
      } else if place < frames {
        sound.withUnsafeMutableBufferPointer {
          decoder.decode(packet, into: .init(rebasing: $0[place * values..<(place + 1) * values]))
        }
      }
    }
    return sound
  }

  /// Encodes `count` frames behind the warm ones, so that they are heard where the decoded ones were: the
  /// encoder is fed its lookahead early.
  private func encode(_ sound: [Float], count: Int) throws(ErrorReport) -> [[UInt8]] {
    var encoder = try OpusEncoder.forSplices()
    // Out of silence, the first packet leans on nothing: a decoder may come from anywhere.
    if outgoing == nil { encoder.setPrediction(false) }
    let ahead = encoder.lookaheadSampleCount * Self.channels
    var buffer = [UInt8](repeating: 0, count: OpusEncoder.maximumPacketByteCount)
    var packets: [[UInt8]] = []
    for index in 0..<Self.settlingFrames + count {
      let byteCount = try sound.withUnsafeBufferPointer { (sound) throws(ErrorReport) in
        try buffer.withUnsafeMutableBufferPointer { (buffer) throws(ErrorReport) in
          try encoder.encode(sound.baseAddress! + index * Self.values + ahead, into: buffer)
        }
      }
      guard index >= Self.settlingFrames else { continue }
      packets.append(Array(buffer[..<byteCount]))
      encoder.setPrediction(true)
    }
    return packets
  }
}
