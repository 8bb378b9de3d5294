import NIOCore
import WireProtocol

/// A record of `antiphon.timed.v1`: sequence u32, due u64, position u32, length u16, then the Opus packet;
/// big-endian (`docs/http-and-websocket.md`).
package enum PacketRecord {
  package static let headerByteCount = 18
  static let lengthOffset = 16

  /// Where a record is that is written over the header of the engine's packet, so that the audio stays where it is.
  static let offsetInPacket = WireLimits.packetHeaderByteCount - headerByteCount

  /// Writes a record's fields over the end of the packet's header.
  ///
  /// - Parameter packet: header and audio, of at most 65,512 bytes (`WireLimits`).
  /// - Returns: the record.
  static func write(
    _ place: PacketCounter.Place, inPlaceOf packet: UnsafeMutableRawBufferPointer
  ) -> UnsafeRawBufferPointer {
    let record = UnsafeMutableRawBufferPointer(rebasing: packet[offsetInPacket...])
    writeHeader(place, audioByteCount: record.count - headerByteCount, into: record)
    return UnsafeRawBufferPointer(record)
  }

  /// - Parameter bytes: `headerByteCount` at the least.
  fileprivate static func writeHeader(
    _ place: PacketCounter.Place, audioByteCount: Int, into bytes: UnsafeMutableRawBufferPointer
  ) {
    bytes.storeBytes(of: place.sequence.bigEndian, as: UInt32.self)
    bytes.storeBytes(of: place.dueNanoseconds.bigEndian, toByteOffset: 4, as: UInt64.self)
    bytes.storeBytes(of: place.positionMilliseconds.bigEndian, toByteOffset: 12, as: UInt32.self)
    bytes.storeBytes(of: UInt16(audioByteCount).bigEndian, toByteOffset: lengthOffset, as: UInt16.self)
  }

  package static func byteCount(audioByteCount: Int) -> Int { headerByteCount + audioByteCount }
}

extension ByteBuffer {
  mutating func writePacketRecord(_ place: PacketCounter.Place, _ audio: some Collection<UInt8>) {
    writeWithUnsafeMutableBytes(minimumWritableBytes: PacketRecord.headerByteCount) {
      PacketRecord.writeHeader(place, audioByteCount: audio.count, into: $0)
      return PacketRecord.headerByteCount
    }
    writeBytes(audio)
  }

  /// The record at the reader index: its whole length in bytes.
  func packetRecordByteCount(at index: Int) -> Int {
    // Written by us with the length inside, so that it is always there.
    PacketRecord.headerByteCount
      + Int(getInteger(at: index + PacketRecord.lengthOffset, as: UInt16.self) ?? 0)
  }
}
