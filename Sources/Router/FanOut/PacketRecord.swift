import NIOCore

/// A record of `antiphon.timed.v1`: sequence u32, due u64, position u32, length u16, then the Opus packet;
/// big-endian (`docs/http-and-websocket.md`).
package enum PacketRecord {
  package static let headerByteCount = 18
  static let lengthOffset = 16

  static func writeHeader(
    _ place: PacketCounter.Place, audioByteCount: Int, to bytes: UnsafeMutableRawBufferPointer
  ) {
    bytes.storeBytes(of: place.sequence.bigEndian, as: UInt32.self)
    bytes.storeBytes(of: place.dueNanoseconds.bigEndian, toByteOffset: 4, as: UInt64.self)
    bytes.storeBytes(of: place.positionMilliseconds.bigEndian, toByteOffset: 12, as: UInt32.self)
    // An audio packet has at most 65,512 bytes (`WireLimits`).
    bytes.storeBytes(of: UInt16(audioByteCount).bigEndian, toByteOffset: lengthOffset, as: UInt16.self)
  }

  package static func byteCount(audioByteCount: Int) -> Int { headerByteCount + audioByteCount }
}

extension ByteBuffer {
  mutating func writePacketRecord(_ place: PacketCounter.Place, _ audio: some Collection<UInt8>) {
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
