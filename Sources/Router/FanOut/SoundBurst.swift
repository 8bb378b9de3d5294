import NIOCore

/// Packets that a session has sent before, for those who join: as records one after another.
package struct SoundBurst {
  package private(set) var records = ByteBuffer()
  package private(set) var count = 0

  package init() {}

  package mutating func append(_ place: PacketCounter.Place, _ audio: some Collection<UInt8>) {
    records.writePacketRecord(place, audio)
    count += 1
  }

  /// Of the audio alone.
  package var audioByteCount: Int { records.readableBytes - count * PacketRecord.headerByteCount }

  /// Calls `body` with each packet's audio, oldest first.
  package func forEachAudio(_ body: (ByteBuffer) -> Void) {
    var index = records.readerIndex
    for _ in 0..<count {
      let byteCount = records.packetRecordByteCount(at: index)
      if let audio = records.getSlice(
        at: index + PacketRecord.headerByteCount, length: byteCount - PacketRecord.headerByteCount)
      {
        body(audio)
      }
      index += byteCount
    }
  }
}
