import Dispatch
import Synchronization
import WireProtocol

/// The 20 ms Opus packets of one track: filled by one producer, read by any number of sessions.
///
/// One writer, and the pacer is the only reader: packets are published by one atomic count, and reading
/// takes no lock. Everything a session or the cache wants to know beside the packets is in `details`.
package final class Timeline: Production {
  /// Packets there are before a session begins: a producer that is late once leaves no gap at the start.
  /// Four packets more cost about a millisecond.
  static let packetsBeforeReady = 5

  package let key: TrackKey
  /// What happened on the way to its packets.
  package let journal = StageJournal()
  /// Asked for by a session that plays already, for its seek, volume or loop.
  let isContinuation: Bool
  package let client: String?
  /// The commands of an endless score while it plays; nil for other tracks.
  let liveScore: LiveScoreControl?
  private let publishedCount = Atomic<Int>(0)
  private let furthestIndex = Atomic<Int>(0)
  private let firstRetained = Atomic<Int>(0)
  private let segmentCount = Atomic<Int>(1)
  private let memory: TimelineMemory
  private let phaseValue = Atomic<UInt8>(Phase.opening.rawValue)
  private let cancelled = Atomic<Bool>(false)
  private let uncacheable = Atomic<Bool>(false)
  private let live = Atomic<Bool>(false)
  private let metadata = TimelineMetadata()
  private let details = Mutex(Details())
  private let wake = DispatchSemaphore(value: 0)

  // Safe: the writer reads it once, when nothing is published and so nothing can be trimmed, and once more
  // when all is published and nothing is trimmed (`forEachPacket`); beside that only the pacer's thread
  // (cursors, `trim`) and `deinit` touch it, and `deinit` runs when no cursor is left.
  private nonisolated(unsafe) var head: PacketSegment

  /// How far production is.
  package enum Phase: UInt8, Sendable {
    /// Fewer than `packetsBeforeReady` packets are published.
    case opening
    /// Ready: at least `packetsBeforeReady` packets, and more to come.
    case producing
    /// Every packet is published.
    case complete
    /// Nothing could be produced.
    case failed
  }

  struct Details {
    var track: TrackDetails?
    var identity: SourceIdentity?
    /// Why opening failed, or why production ended before the source's own end.
    var failure: ErrorReport?
  }

  /// - Parameter memory: what its segments are counted in, beside those of others.
  package init(
    key: TrackKey, isContinuation: Bool = false, client: String? = nil,
    memory: TimelineMemory = TimelineMemory()
  ) {
    self.key = key
    self.isContinuation = isContinuation
    self.client = client
    liveScore = key.source.isEndlessScore ? LiveScoreControl() : nil
    self.memory = memory
    memory.add(segments: 1)
    head = PacketSegment(firstIndex: 0)
  }

  deinit {
    memory.add(segments: -segmentCount.load(ordering: .relaxed))
    var segment: PacketSegment? = head
    while let current = segment {
      segment = current.next
      current.deallocate()
    }
  }

  package var phase: Phase { Phase(rawValue: phaseValue.load(ordering: .acquiring))! }
  package var isOpening: Bool { phase == .opening }
  /// Packets published so far.
  package var packetCount: Int { publishedCount.load(ordering: .acquiring) }
  var track: TrackDetails? { details.withLock { $0.track } }
  /// Which bytes it is made of; nil until they are open.
  package var identity: SourceIdentity? { details.withLock { $0.identity } }
  package var failure: ErrorReport? { details.withLock { $0.failure } }
  package var byteCount: Int { segmentCount.load(ordering: .relaxed) * PacketSegment.byteCount }

  /// Packets produced beyond the session that is furthest: how soon the timeline runs dry.
  package var packetsAhead: Int { packetCount - furthestIndex.load(ordering: .relaxed) }

  /// Its source has no end, and plays now what it plays: who joins, joins where it is.
  package var isLive: Bool { live.load(ordering: .relaxed) }

  /// Packets between a session that joins a live source and what comes of it next: 3 s, in which it may be late.
  private static let livePacketsBehind = 150

  /// Where a session begins that asks for a position.
  package func startIndex(atMilliseconds position: Int) -> Int {
    guard isLive else { return max(0, packetIndex(atMilliseconds: position)) }
    return max(firstRetained.load(ordering: .relaxed), packetCount - Self.livePacketsBehind)
  }

  /// Whether a cursor can be put at a position: it is kept, or will be produced within two seconds.
  package func covers(positionMilliseconds position: Int) -> Bool {
    if isLive, position == key.startMilliseconds { return phase == .opening || phase == .producing }
    let index = packetIndex(atMilliseconds: position)
    guard index >= firstRetained.load(ordering: .relaxed) else { return false }
    switch phase {
    case .failed: return false
    case .complete: return index < packetCount
    case .opening, .producing: return index <= packetCount + 100
    }
  }

  /// Whether the packet at a position is there to be read.
  func hasPacket(atMilliseconds position: Int) -> Bool {
    let index = packetIndex(atMilliseconds: position)
    return index >= firstRetained.load(ordering: .relaxed) && index < packetCount
  }

  /// The packet that holds a position of the source; negative before the timeline's start.
  package func packetIndex(atMilliseconds position: Int) -> Int {
    let offset = position - key.startMilliseconds
    return offset < 0 ? -1 : offset / WireLimits.packetDurationMilliseconds
  }

  /// The position of a packet in the source, in milliseconds.
  package func position(ofPacket index: Int) -> Int {
    key.startMilliseconds + index * WireLimits.packetDurationMilliseconds
  }
}

// MARK: - The producer's side

extension Timeline {
  /// Where the producer appends. One a timeline: `TimelineStore` gives each timeline to one producer.
  package struct Writer: ~Copyable {
    let timeline: Timeline
    private var tail: PacketSegment
    private var offset = PacketSegment.firstPacketOffset
    private(set) var count = 0

    package init(_ timeline: Timeline) {
      self.timeline = timeline
      tail = timeline.head
    }

    /// Publishes one packet of 1 to 1,276 bytes (RFC 6716, section 3.2: one frame of 20 ms).
    package mutating func append(_ packet: UnsafeRawBufferPointer) {
      if !PacketSegment.canAppend(byteCount: packet.count, at: offset) {
        let next = PacketSegment(firstIndex: count)
        tail.next = next
        tail.close(at: offset)
        tail = next
        offset = PacketSegment.firstPacketOffset
        timeline.segmentCount.add(1, ordering: .relaxed)
        timeline.memory.add(segments: 1)
      }
      offset = tail.append(packet, at: offset)
      count += 1
      timeline.publishedCount.store(count, ordering: .releasing)
    }
  }

  /// The source is open.
  package func becomeOpen(_ identity: SourceIdentity) { details.withLock { $0.identity = identity } }

  /// The track is open and its first packets are published.
  package func becomeReady(_ track: TrackDetails) {
    details.withLock { $0.track = track }
    phaseValue.store(Phase.producing.rawValue, ordering: .releasing)
  }

  /// Production ended: at the source's end, or with a reason before it.
  package func finish(failure: ErrorReport?) {
    details.withLock { $0.failure = failure }
    let phase: Phase = track == nil ? .failed : .complete
    phaseValue.store(phase.rawValue, ordering: .releasing)
  }

  /// Every packet of a complete timeline, in order. For its producer alone, and not of an uncacheable one, whose
  /// segments the pacer frees.
  func forEachPacket(
    _ body: (UnsafeRawBufferPointer) throws(ErrorReport) -> Void
  ) throws(ErrorReport) {
    precondition(phase == .complete && !isUncacheable)
    var segment = head
    var offset = PacketSegment.firstPacketOffset
    for _ in 0..<packetCount {
      if segment.packet(at: offset) == nil {
        segment = segment.next!
        offset = PacketSegment.firstPacketOffset
      }
      let packet = segment.packet(at: offset)!
      try body(packet)
      offset += 2 + packet.count
    }
  }

  /// Asks the producer to stop; nobody listens any more.
  package func cancel() {
    cancelled.store(true, ordering: .relaxed)
    wake.signal()
  }
  package var isCancelled: Bool { cancelled.load(ordering: .relaxed) }

  /// Blocks the producer while it is far enough ahead: for so long, or until `cancel`.
  func rest(milliseconds: Int) { _ = wake.wait(timeout: .now() + .milliseconds(milliseconds)) }

  /// The source has no end.
  package func becomeLive() {
    markUncacheable()
    live.store(true, ordering: .relaxed)
  }

  /// The source says what plays from the next packet on.
  package func note(_ new: StreamMetadata) { metadata.append(new, at: packetCount) }

  /// The timeline will not be kept in the cache: what every session has played is freed.
  package func markUncacheable() { uncacheable.store(true, ordering: .relaxed) }
  package var isUncacheable: Bool { uncacheable.load(ordering: .relaxed) }
}

// MARK: - The pacer's side

extension Timeline {
  /// A session's place. Used by the pacer's thread alone.
  package struct Cursor {
    let timeline: Timeline
    /// The packet to be read next.
    private(set) var index: Int
    /// The packet that stands for the timeline's start: another one where a live source was joined.
    private let origin: Int
    private var segment: PacketSegment?
    private var offset = 0

    package init(_ timeline: Timeline, index: Int = 0, origin: Int = 0) {
      self.timeline = timeline
      self.index = index
      self.origin = origin
      timeline.requestProduction(upTo: index)
    }

    package var positionMilliseconds: Int { position(ofPacket: index) }
    func position(ofPacket index: Int) -> Int { timeline.position(ofPacket: index - origin) }
    func packetIndex(atMilliseconds position: Int) -> Int {
      timeline.packetIndex(atMilliseconds: position) + origin
    }
    /// Whether the next packet is there to be read.
    package var hasPacket: Bool { index < timeline.packetCount }

    /// Reads the next packet, or nil where none is published.
    package mutating func withNext(_ body: (UnsafeRawBufferPointer) -> Void) -> Bool {
      guard hasPacket else { return false }
      if segment == nil { findPlace() }
      // Safe: `index` is published, so its segment, and every one before it, is fully written.
      if let packet = segment!.packet(at: offset) {
        body(packet)
        advance(past: packet.count)
      } else {
        segment = segment!.next
        offset = PacketSegment.firstPacketOffset
        let packet = segment!.packet(at: offset)!
        body(packet)
        advance(past: packet.count)
      }
      return true
    }

    /// Goes past the next packet, which is there, without reading it.
    package mutating func skip() { _ = withNext { _ in } }

    /// What the source has said last of the packets up to this one, where that came after the entry `number`.
    package func metadata(after number: Int) -> TimelineMetadata.Entry? {
      timeline.metadata.last(upTo: index, after: number)
    }

    /// Packets before the next one that are kept.
    var previousCount: Int {
      // One that waits for its packet on another timeline may stand beyond all that is there.
      guard index <= timeline.packetCount else { return 0 }
      return max(0, index - timeline.firstRetained.load(ordering: .relaxed))
    }

    /// Reads the last packets before the next one again, oldest first.
    ///
    /// - Parameter count: `previousCount` at most.
    func forEachPrevious(_ count: Int, _ body: (UnsafeRawBufferPointer) -> Void) {
      var reader = self
      reader.place(at: index - count)
      for _ in 0..<count { _ = reader.withNext(body) }
    }

    /// Copies of the packets around an index, as far as they are there: for a splice at it.
    package func spliceSide(at index: Int) -> Splice.Side {
      let first = max(index - Splice.packetsBefore, timeline.firstRetained.load(ordering: .relaxed), 0)
      let end = min(index + Splice.packetsFrom, timeline.packetCount)
      guard first < end else { return Splice.Side(packets: [], spliceIndex: 0) }
      var packets: [[UInt8]] = []
      var reader = self
      reader.place(at: first)
      for _ in first..<end { _ = reader.withNext { packets.append(Array($0)) } }
      return Splice.Side(packets: packets, spliceIndex: index - first)
    }

    package mutating func move(to index: Int) {
      place(at: index)
      timeline.requestProduction(upTo: index)
    }

    private mutating func place(at index: Int) {
      self.index = index
      segment = nil
    }

    private mutating func advance(past byteCount: Int) {
      offset += 2 + byteCount
      index += 1
      timeline.raiseFurthest(to: index)
    }

    /// Walks to the segment and offset of `index`: one hop a second of audio.
    private mutating func findPlace() {
      var current = timeline.head
      // What a cursor was put on may have been trimmed before it was read from.
      index = max(index, current.firstIndex)
      while let next = current.next, next.firstIndex <= index { current = next }
      offset = PacketSegment.firstPacketOffset
      for _ in current.firstIndex..<index {
        guard let packet = current.packet(at: offset) else { break }
        offset += 2 + packet.count
      }
      segment = current
    }
  }

  /// A session waits for a place.
  func requestProduction(upToMilliseconds position: Int) {
    requestProduction(upTo: packetIndex(atMilliseconds: position))
  }

  /// A cursor was put here: the producer reads ahead from here on, and a resting one is woken for it.
  fileprivate func requestProduction(upTo index: Int) {
    raiseFurthest(to: index)
    if index >= packetCount { wake.signal() }
  }

  /// Only the pacer's thread writes it.
  fileprivate func raiseFurthest(to index: Int) {
    if index > furthestIndex.load(ordering: .relaxed) { furthestIndex.store(index, ordering: .relaxed) }
  }

  /// Frees what lies wholly before the packet in front of this one: a cursor that reads this one next may still
  /// stand behind that packet, at its segment's end mark. Pacer's thread only.
  package func trim(before index: Int) {
    while let next = head.next, next.firstIndex < index, next.firstIndex < packetCount {
      head.deallocate()
      head = next
      firstRetained.store(next.firstIndex, ordering: .relaxed)
      segmentCount.subtract(1, ordering: .relaxed)
      memory.add(segments: -1)
    }
  }
}
