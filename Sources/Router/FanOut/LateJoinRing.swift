import NIOCore

/// The last 5 s of a session, as records one after another in one buffer, so that keeping a packet
/// allocates nothing and 5 s cost their bytes alone.
package struct LateJoinRing {
  private var records = ByteBuffer()
  package private(set) var count = 0

  package init() {}

  package mutating func append(_ place: PacketCounter.Place, _ audio: ArraySlice<UInt8>) {
    let byteCount = PacketRecord.byteCount(audioByteCount: audio.count)
    while count > 0,
      count == RouterLimits.lateJoinPacketCount
        || records.readableBytes + byteCount > RouterLimits.lateJoinByteCount
    {
      records.moveReaderIndex(forwardBy: records.packetRecordByteCount(at: records.readerIndex))
      count -= 1
    }
    // Moving what is kept to the front now and then is cheaper than growing for ever.
    if records.writableBytes < byteCount { records.discardReadBytes() }
    records.writePacketRecord(place, audio)
    count += 1
  }

  /// Forgets the sound, which is no longer what the session plays.
  package mutating func removeAll() {
    records = ByteBuffer()
    count = 0
  }

  /// Calls `body` with each of the last `packetCount` records, oldest first: the record and its audio.
  package func forEach(last packetCount: Int, _ body: (_ record: ByteBuffer, _ audio: ByteBuffer) -> Void) {
    var index = records.readerIndex
    for place in 0..<count {
      let byteCount = records.packetRecordByteCount(at: index)
      if place >= count - packetCount,
        let record = records.getSlice(at: index, length: byteCount),
        let audio = records.getSlice(
          at: index + PacketRecord.headerByteCount, length: byteCount - PacketRecord.headerByteCount)
      {
        body(record, audio)
      }
      index += byteCount
    }
  }
}
