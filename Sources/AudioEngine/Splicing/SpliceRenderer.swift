import Glibc
import WireProtocol

/// Renders splices, one after the other, packet by packet. Used by one thread.
///
/// It keeps its encoder and decoders, since making them costs as much as two packets.
package final class SpliceRenderer {
  private static let frame = OpusEncoder.frameSampleCount
  private static let channels = Resampler.channelCount
  private static let values = frame * channels
  /// The share of the incoming side, sample by sample, over the fade.
  private static let ramp: [Float] = (0..<frame).map { index in
    let turn: Double = .pi * (Double(index) + 0.5) / Double(frame)
    return Float(0.5 - 0.5 * cos(turn))
  }
  /// Of silence, one frame tells the encoder all that there is to be told.
  private static let silentFrames = 1

  private var encoder: OpusEncoder
  private var outgoing: SideDecoder
  private var incoming: SideDecoder
  /// The frame that is encoded next, and the one behind it, of which the encoder is fed its lookahead early: so
  /// what it encodes is heard where the decoded sound was.
  private var sound = [Float](repeating: 0, count: 2 * values)
  private var mixed = [Float](repeating: 0, count: values)
  private var packet = [UInt8](repeating: 0, count: OpusEncoder.maximumPacketByteCount)
  /// The frame that is encoded next, counted from the joint.
  private var frameIndex = 0

  /// - Throws: `internal` where libopus has no memory.
  package init() throws(ErrorReport) {
    encoder = try OpusEncoder.forSplices()
    outgoing = try SideDecoder()
    incoming = try SideDecoder()
  }

  /// Begins with another splice.
  package func begin(_ splice: Splice) {
    encoder.reset()
    // Out of silence, the first packet leans on nothing: a decoder may come from anywhere.
    encoder.setPrediction(splice.outgoing != nil)
    outgoing.begin(splice.outgoing)
    incoming.begin(splice.incoming)
    frameIndex = splice.outgoing == nil ? -Self.silentFrames : -Splice.settlingFrames
    decode(frameIndex, behind: 0)
  }

  /// The splice's next packet; `packetCount` of them may be asked for.
  package func next() throws(ErrorReport) -> [UInt8] {
    while frameIndex < 0 { _ = try encode() }
    let byteCount = try encode()
    encoder.setPrediction(true)
    return Array(packet[..<byteCount])
  }

  /// Encodes the frame that is next, of which the start of the one behind it is needed.
  private func encode() throws(ErrorReport) -> Int {
    decode(frameIndex + 1, behind: 1)
    let lookahead = encoder.lookaheadSampleCount * Self.channels
    let byteCount = try sound.withUnsafeBufferPointer { (sound) throws(ErrorReport) in
      try packet.withUnsafeMutableBufferPointer { (packet) throws(ErrorReport) in
        // Safe: a frame and its lookahead are less than the two frames that are there.
        try encoder.encode(sound.baseAddress! + lookahead, into: packet)
      }
    }
    sound.withUnsafeMutableBufferPointer { sound in
      for index in 0..<Self.values { sound[index] = sound[Self.values + index] }
    }
    frameIndex += 1
    return byteCount
  }

  /// Mixes both sides at a frame.
  ///
  /// - Parameter place: of the two frames of `sound`.
  private func decode(_ frame: Int, behind place: Int) {
    sound.withUnsafeMutableBufferPointer { sound in
      let heard = UnsafeMutableBufferPointer(
        rebasing: sound[place * Self.values..<(place + 1) * Self.values])
      guard frame >= 0 else { return outgoing.decode(frame, into: heard) }
      guard frame == 0 else { return incoming.decode(frame, into: heard) }
      outgoing.decode(frame, into: heard)
      mixed.withUnsafeMutableBufferPointer { mixed in
        incoming.decode(frame, into: mixed)
        for index in 0..<Self.values {
          heard[index] += Self.ramp[index / Self.channels] * (mixed[index] - heard[index])
        }
      }
    }
  }
}

extension Splice {
  /// All packets at once.
  package func render() throws(ErrorReport) -> [[UInt8]] {
    let renderer = try SpliceRenderer()
    renderer.begin(self)
    var packets: [[UInt8]] = []
    for _ in 0..<packetCount { packets.append(try renderer.next()) }
    return packets
  }
}

/// One side's sound, frame by frame, as its listeners hear it.
private struct SideDecoder: ~Copyable {
  private var decoder: OpusDecoder
  private var packets: ArraySlice<[UInt8]> = []
  /// The frame of the first of `packets`, counted from the joint.
  private var nextFrame = 0

  init() throws(ErrorReport) { decoder = try OpusDecoder() }

  mutating func begin(_ side: Splice.Side?) {
    decoder.reset()
    packets = side?.packets[...] ?? []
    nextFrame = -(side?.spliceIndex ?? 0)
  }

  /// The sound of a frame, later than all before; silence where it has no packet.
  mutating func decode(_ frame: Int, into sound: UnsafeMutableBufferPointer<Float>) {
    while nextFrame <= frame, let packet = packets.popFirst() {
      decoder.decode(packet, into: sound)
      nextFrame += 1
      if nextFrame > frame { return }
    }
    sound.update(repeating: 0)
  }
}
