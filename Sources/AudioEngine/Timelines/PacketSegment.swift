import Synchronization

/// A block of a timeline's packets: 16 KiB, about one second at 128 kbit/s.
///
/// Layout: the next segment's address (8 bytes), the index of the first packet (8 bytes), then packets as
/// a u16 length and their bytes, and after the last packet the end mark. A segment is written by the
/// timeline's producer and read by the pacer; what lies before the timeline's published count is never
/// written again, so reading it needs no lock.
struct PacketSegment {
  static let byteCount = 4 * OpusPassthrough.maximumPacketByteCount
  static let firstPacketOffset = 16
  private static let endMark = UInt16.max

  // Safe: memory of `byteCount` bytes, owned by the timeline that allocated it and freed by it alone;
  // every access below stays within it because `canAppend` is checked before writing.
  private let base: UnsafeMutableRawPointer

  init(firstIndex: Int) {
    base = .allocate(byteCount: Self.byteCount, alignment: 16)
    base.bindMemory(to: Atomic<UInt>.self, capacity: 1).initialize(to: Atomic(0))
    base.storeBytes(of: firstIndex, toByteOffset: 8, as: Int.self)
  }

  private init(base: UnsafeMutableRawPointer) { self.base = base }

  var firstIndex: Int { base.load(fromByteOffset: 8, as: Int.self) }

  /// The segment after this one. Set once, and only after the next one's first index was written.
  var next: PacketSegment? {
    get {
      let address = nextAddress.pointee.load(ordering: .acquiring)
      return UnsafeMutableRawPointer(bitPattern: address).map(PacketSegment.init(base:))
    }
    nonmutating set {
      nextAddress.pointee.store(UInt(bitPattern: newValue?.base), ordering: .releasing)
    }
  }

  private var nextAddress: UnsafeMutablePointer<Atomic<UInt>> {
    base.assumingMemoryBound(to: Atomic<UInt>.self)
  }

  /// Whether a packet fits, with room for the end mark behind it.
  static func canAppend(byteCount: Int, at offset: Int) -> Bool {
    offset + 2 + byteCount + 2 <= Self.byteCount
  }

  /// Writes a packet; returns the offset behind it.
  func append(_ packet: UnsafeRawBufferPointer, at offset: Int) -> Int {
    base.storeBytes(of: UInt16(packet.count), toByteOffset: offset, as: UInt16.self)
    (base + offset + 2).copyMemory(from: packet.baseAddress!, byteCount: packet.count)
    return offset + 2 + packet.count
  }

  /// Marks that the next packet is in the next segment.
  func close(at offset: Int) {
    base.storeBytes(of: Self.endMark, toByteOffset: offset, as: UInt16.self)
  }

  /// The packet at `offset`, or nil at the end mark. Only for packets already published.
  func packet(at offset: Int) -> UnsafeRawBufferPointer? {
    let length = base.loadUnaligned(fromByteOffset: offset, as: UInt16.self)
    guard length != Self.endMark else { return nil }
    return UnsafeRawBufferPointer(start: base + offset + 2, count: Int(length))
  }

  func deallocate() { base.deallocate() }
}
