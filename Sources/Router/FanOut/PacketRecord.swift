import NIOCore

/// A record of `antiphon.timed.v1`: sequence u32, due u64, position u32, length u16, then the Opus packet;
/// big-endian (`docs/http-and-websocket.md`).
package enum PacketRecord {
  package static let headerByteCount = 18
  static let lengthOffset = 16

  package static func byteCount(audioByteCount: Int) -> Int { headerByteCount + audioByteCount }
}

extension ByteBuffer {
  mutating func writePacketRecord(_ place: PacketCounter.Place, _ audio: ArraySlice<UInt8>) {
    writeMultipleIntegers(
      place.sequence, place.dueNanoseconds, place.positionMilliseconds, UInt16(audio.count))
    writeBytes(audio)
  }

  /// The record at the reader index: its whole length in bytes.
  func packetRecordByteCount(at index: Int) -> Int {
    // Written by us with the length inside, so that it is always there.
    PacketRecord.headerByteCount
      + Int(getInteger(at: index + PacketRecord.lengthOffset, as: UInt16.self) ?? 0)
  }
}
