import WireProtocol

/// Packets on their way from a decoder process to a timeline: collected, and delivered together. Before more of the
/// source is waited for, what there is of them is delivered (`EngineClient`).
final class PacketBatch {
  /// Packets in one message: a good part of a time slice, and not the whole of it.
  private static let packetCount = 25

  private let engine: EngineClient
  /// How many of the first are not delivered.
  private let prerollCount: Int
  private var bytes: [UInt8] = []
  /// How many are delivered with the next message.
  private var waitingCount = 0
  /// Made, those of the pre-roll included.
  private(set) var count = 0
  /// Why nothing can be delivered any more.
  private var failure: ErrorReport?

  init(_ engine: EngineClient, prerollCount: Int) {
    self.engine = engine
    self.prerollCount = prerollCount
    bytes.reserveCapacity(DecoderSocket.maximumPayloadByteCount)
    engine.batch = self
  }

  /// Takes a packet of at most a quarter of a timeline's segment (`OpusPassthrough`).
  func append(_ packet: UnsafeRawBufferPointer) {
    count += 1
    guard count > prerollCount else { return }
    if bytes.count + 2 + packet.count > DecoderSocket.maximumPayloadByteCount { deliver() }
    let length = UInt16(packet.count)
    bytes.append(UInt8(truncatingIfNeeded: length))
    bytes.append(UInt8(truncatingIfNeeded: length >> 8))
    bytes.append(contentsOf: packet)
    waitingCount += 1
    // The first few at once: someone waits for the track to begin.
    if waitingCount == Self.packetCount || count - prerollCount == Timeline.packetsBeforeReady { deliver() }
  }

  /// Says what plays from the next packet on.
  func tell(_ metadata: StreamMetadata) throws(ErrorReport) {
    deliver()
    try engine.tell(metadata)
  }

  func deliver() {
    guard waitingCount > 0, failure == nil else { return }
    let result = bytes.withUnsafeBytes { bytes in
      Result { () throws(ErrorReport) in try engine.deliver(bytes) }
    }
    if case .failure(let report) = result { failure = report }
    clear()
  }

  /// Delivers what is there, and waits for the next time slice.
  func endTimeSlice(cpuNanoseconds: UInt64) throws(ErrorReport) {
    try check()
    let result = bytes.withUnsafeBytes { bytes in
      Result { () throws(ErrorReport) in try engine.endTimeSlice(bytes, cpuNanoseconds: cpuNanoseconds) }
    }
    try result.get()
    clear()
  }

  /// - Throws: why nothing can be delivered any more.
  func check() throws(ErrorReport) {
    if let failure { throw failure }
  }

  private func clear() {
    bytes.removeAll(keepingCapacity: true)
    waitingCount = 0
  }
}

/// The packets in the payload of a message, 20 ms of sound each.
struct PacketList: Sequence, IteratorProtocol {
  private var rest: UnsafeRawBufferPointer
  /// Whether what follows is no packet.
  private(set) var isBroken = false

  init(_ payload: UnsafeRawBufferPointer) { rest = payload }

  mutating func next() -> UnsafeRawBufferPointer? {
    guard rest.count > 2 else {
      isBroken = !rest.isEmpty
      return nil
    }
    let length = Int(rest[0]) | Int(rest[1]) << 8
    guard 2 + length <= rest.count, case let packet = UnsafeRawBufferPointer(rebasing: rest[2..<2 + length]),
      OpusPassthrough.fits(packet: packet)
    else {
      isBroken = true
      return nil
    }
    rest = UnsafeRawBufferPointer(rebasing: rest[(2 + length)...])
    return packet
  }
}
