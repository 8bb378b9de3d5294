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
  static let settlingFrames = 3
  /// Packets wanted before a place.
  package static let packetsBefore = 2 * settlingFrames
  /// Packets that stand where sound follows: the one that fades, and three after which the timeline's own can
  /// lean on them.
  package static let joinedPackets = 4
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

  /// The packets that stand at the joint: one where sound fades out into silence, `joinedPackets` where sound
  /// follows.
  package var packetCount: Int { incoming == nil ? 1 : Self.joinedPackets }
}
