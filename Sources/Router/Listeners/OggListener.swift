import Collections
import NIOCore
import OggOpus
import ServiceSupport
import WireProtocol

/// One `/listen` player on the data plane's loop: a bounded row of packets that the HTTP side takes a page
/// at a time, filled with silence while the session is silent, so that the player stays connected.
package final class OggListener {
  package let sessionID: SessionID
  let grant: Grant
  private let eventLoop: any EventLoop
  private let statistics: RouterStatistics
  private var packets: Deque<Packet> = []
  /// 2 s, and on joining as many more as it was given at once, until it has taken them.
  private var capacity = RouterLimits.outboxAudioFrameCount
  /// Of what waits.
  private(set) var waitingByteCount = 0
  /// Of shared bytes its part.
  private var partByteCount = 0
  private var accountedByteCount = 0
  /// Whether its client may have so many more bytes waiting.
  package var hasRoom: (Int) -> Bool = { _ in true }
  /// Told what more of them wait, or less where it is negative.
  package var onWaiting: (Int) -> Void = { _ in }
  /// Whether it gets what its session sends: not before it has had what was sent just before.
  var hears = false
  private var hasLackedRoom = false
  private var waiter: EventLoopPromise<[ByteBuffer]?>?
  private var isEnded = false
  private var lastTaken = NIODeadline.now()
  private var hasGivenFirstPage = false

  private struct Packet {
    var audio: ByteBuffer
    /// What it adds to what waits for its client.
    var part: Int
  }

  /// When the last packet of the session came, and up to when the player has been given sound.
  private var lastPacketNanoseconds: UInt64
  private var suppliedUntilNanoseconds: UInt64

  package init(
    sessionID: SessionID, grant: Grant, eventLoop: any EventLoop, statistics: RouterStatistics,
    now: UInt64 = MonotonicClock.nowNanoseconds
  ) {
    self.sessionID = sessionID
    self.grant = grant
    self.eventLoop = eventLoop
    self.statistics = statistics
    lastPacketNanoseconds = now
    suppliedUntilNanoseconds = now
  }

  /// Takes one packet of the session.
  ///
  /// - Parameters:
  ///   - sharers: how many listeners get the same bytes.
  ///   - now: `MonotonicClock.nowNanoseconds`.
  package func take(_ packet: ByteBuffer, sharedBy sharers: Int = 1, now: UInt64) {
    lastPacketNanoseconds = now
    suppliedUntilNanoseconds += WireLimits.packetDurationNanoseconds
    keep(Packet(audio: packet, part: packet.readableBytes / sharers))
  }

  /// Takes what has been played just before, which is ahead of the clock.
  package func takeBurst(_ packet: ByteBuffer) {
    capacity += 1
    keep(Packet(audio: packet, part: packet.readableBytes))
  }

  /// Fills up with silence what the clock is ahead of a session that is silent. Called every 100 ms.
  ///
  /// - Parameter now: `MonotonicClock.nowNanoseconds`.
  package func fillSilence(now: UInt64) {
    guard now >= lastPacketNanoseconds + RouterLimits.silenceAfterNanoseconds else { return }
    // Of a longer gap the player hears no more than it can keep.
    let mostNanoseconds =
      UInt64(RouterLimits.outboxAudioFrameCount) * WireLimits.packetDurationNanoseconds
    if now > suppliedUntilNanoseconds + mostNanoseconds {
      suppliedUntilNanoseconds = now - mostNanoseconds
    }
    while suppliedUntilNanoseconds + WireLimits.packetDurationNanoseconds <= now {
      suppliedUntilNanoseconds += WireLimits.packetDurationNanoseconds
      keep(Packet(audio: OpusSilence.packet, part: 0))
    }
  }

  /// The packets of the next page; nil when the stream is over.
  package func nextPage() -> EventLoopFuture<[ByteBuffer]?> {
    lastTaken = .now()
    let promise = eventLoop.makePromise(of: [ByteBuffer]?.self)
    waiter = promise
    serve()
    return promise.futureResult
  }

  /// Whether the player has stopped taking.
  func isStuck(now: NIODeadline) -> Bool {
    let seconds = hasLackedRoom ? RouterLimits.oggStuckWithoutRoomSeconds : RouterLimits.oggStuckSeconds
    return waiter == nil && now - lastTaken >= .seconds(seconds)
  }

  /// It has gone.
  func forget() {
    packets.removeAll()
    waitingByteCount = 0
    partByteCount = 0
    account()
  }

  /// Ends the stream of a player whose token has expired. Called once a second.
  func runHousekeeping() {
    if grant.isExpired() { end() }
  }

  package func end() {
    isEnded = true
    serve()
  }

  private func keep(_ packet: Packet) {
    if packets.count == capacity || lacksRoom(for: packet) {
      removeFirst()
      statistics.droppedFrames += 1
    }
    packets.append(packet)
    waitingByteCount += packet.audio.readableBytes
    partByteCount += packet.part
    serve()
    account()
  }

  /// Whether it does not take what there is.
  private var isLate: Bool { waiter == nil && packets.count > RouterLimits.oggPacketsPerPage }

  /// Asked of those alone that are late.
  private func lacksRoom(for packet: Packet) -> Bool {
    guard isLate, !hasRoom(packet.part) else { return false }
    hasLackedRoom = true
    return true
  }

  private func removeFirst() {
    let packet = packets.removeFirst()
    waitingByteCount -= packet.audio.readableBytes
    partByteCount -= packet.part
  }

  private func account() {
    let waiting = partByteCount + (isLate ? RouterLimits.lateOggByteCount : 0)
    let change = waiting - accountedByteCount
    guard abs(change) >= RouterLimits.audioStepByteCount || (waiting == 0 && change != 0) else { return }
    accountedByteCount = waiting
    onWaiting(change)
  }

  private func serve() {
    guard let waiter else { return }
    if isEnded {
      self.waiter = nil
      waiter.succeed(nil)
    } else if packets.count >= (hasGivenFirstPage ? RouterLimits.oggPacketsPerPage : 1) {
      self.waiter = nil
      hasGivenFirstPage = true
      let page = packets.prefix(RouterLimits.oggPacketsPerPage).map(\.audio)
      for _ in page { removeFirst() }
      capacity = min(capacity, packets.count + RouterLimits.outboxAudioFrameCount)
      let byteCount = page.reduce(0) { $0 + $1.readableBytes }
      hasLackedRoom = false
      account()
      statistics.messagesSent += 1
      statistics.bytesSent += byteCount
      waiter.succeed(page)
    }
  }
}
