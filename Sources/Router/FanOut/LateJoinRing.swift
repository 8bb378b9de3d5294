import Collections
import NIOCore

/// The last 5 s of a session, as records one after another in pieces of memory, so that keeping a packet allocates
/// nothing but a piece now and then, and what is kept takes little more than its bytes.
package struct LateJoinRing {
  private struct Segment {
    var records: ByteBuffer
    var count = 0
  }

  private var segments: Deque<Segment> = []
  package private(set) var count = 0
  /// The memory it takes.
  package private(set) var byteCount = 0
  /// Of the records alone.
  private var recordsByteCount = 0
  private var lastRecordByteCount = 0
  /// What it may take; past it the oldest go.
  package var limit = RouterLimits.lateJoinByteCount {
    didSet { while byteCount > limit { removeFirstSegment() } }
  }

  package init() {}

  /// About what 5 s of such packets take.
  package var wishedByteCount: Int {
    guard lastRecordByteCount > 0 else { return 0 }
    let records =
      count > 0
      ? recordsByteCount * RouterLimits.lateJoinPacketCount / count
      : lastRecordByteCount * RouterLimits.lateJoinPacketCount
    // The ends of segments stay empty, and the first and the last are kept in part.
    return min(
      records + records / 8 + 2 * RouterLimits.lateJoinSegmentByteCount, RouterLimits.lateJoinByteCount)
  }

  /// - Parameter hasRoom: whether there is so much more memory for it; where not, its oldest make room.
  package mutating func append(
    _ place: PacketCounter.Place, _ audio: some Collection<UInt8>, hasRoom: (Int) -> Bool = { _ in true }
  ) {
    let byteCount = PacketRecord.byteCount(audioByteCount: audio.count)
    lastRecordByteCount = byteCount
    if count == RouterLimits.lateJoinPacketCount { removeFirst() }
    if (segments.last?.records.writableBytes ?? 0) < byteCount, !addSegment(for: byteCount, hasRoom) {
      return
    }
    segments[segments.count - 1].records.writePacketRecord(place, audio)
    segments[segments.count - 1].count += 1
    recordsByteCount += byteCount
    count += 1
  }

  /// Forgets the sound, which is no longer what the session plays.
  package mutating func removeAll() {
    let limit = limit
    self = LateJoinRing()
    self.limit = limit
  }

  /// Calls `body` with each of the last `packetCount` records, oldest first: the record and its audio.
  package func forEach(last packetCount: Int, _ body: (_ record: ByteBuffer, _ audio: ByteBuffer) -> Void) {
    var place = 0
    for segment in segments {
      let records = segment.records
      var index = records.readerIndex
      for _ in 0..<segment.count {
        let byteCount = records.packetRecordByteCount(at: index)
        if place >= count - packetCount,
          let record = records.getSlice(at: index, length: byteCount),
          let audio = records.getSlice(
            at: index + PacketRecord.headerByteCount, length: byteCount - PacketRecord.headerByteCount)
        {
          body(record, audio)
        }
        index += byteCount
        place += 1
      }
    }
  }

  /// - Returns: false where there is no room for one at all.
  private mutating func addSegment(for recordByteCount: Int, _ hasRoom: (Int) -> Bool) -> Bool {
    let records = ByteBufferAllocator().buffer(
      capacity: max(RouterLimits.lateJoinSegmentByteCount, recordByteCount))
    var freed = 0
    while byteCount + records.capacity > limit
      || (freed < records.capacity && !hasRoom(records.capacity - freed))
    {
      guard !segments.isEmpty else { return false }
      freed += removeFirstSegment()
    }
    segments.append(Segment(records: records))
    byteCount += records.capacity
    return true
  }

  private mutating func removeFirst() {
    let length = segments[0].records.packetRecordByteCount(at: segments[0].records.readerIndex)
    segments[0].records.moveReaderIndex(forwardBy: length)
    segments[0].count -= 1
    recordsByteCount -= length
    count -= 1
    if segments[0].count == 0 { removeFirstSegment() }
  }

  /// - Returns: the memory that it took.
  @discardableResult
  private mutating func removeFirstSegment() -> Int {
    let segment = segments.removeFirst()
    recordsByteCount -= segment.records.readableBytes
    count -= segment.count
    byteCount -= segment.records.capacity
    return segment.records.capacity
  }
}
