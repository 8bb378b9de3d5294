import Collections
import NIOCore
import WireProtocol

/// One `/listen` player on the data plane's loop: a bounded row of packets that the HTTP side takes a page
/// at a time, filled with silence while the session is silent, so that the player stays connected.
package final class OggListener {
  package let sessionID: SessionID
  let grant: Grant
  private let eventLoop: any EventLoop
  private let statistics: RouterStatistics
  private var packets: Deque<ByteBuffer> = []
  /// 2 s, and what it was given at once on joining.
  private var capacity = RouterLimits.outboxAudioFrameCount
  /// Of what waits.
  private(set) var waitingByteCount = 0
  private var waiter: EventLoopPromise<[ByteBuffer]?>?
  private var isEnded = false
  private var lastTaken = NIODeadline.now()
  private var hasGivenFirstPage = false

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
  /// - Parameter now: `MonotonicClock.nowNanoseconds`.
  package func take(_ packet: ByteBuffer, now: UInt64) {
    lastPacketNanoseconds = now
    suppliedUntilNanoseconds += WireLimits.packetDurationNanoseconds
    keep(packet)
  }

  /// Takes what has been played just before, which is ahead of the clock.
  package func takeBurst(_ packet: ByteBuffer) {
    capacity += 1
    keep(packet)
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
      keep(OpusSilence.packet)
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
    waiter == nil && now - lastTaken >= .seconds(RouterLimits.oggStuckSeconds)
  }

  /// Ends the stream of a player whose token has expired. Called once a second.
  func look() {
    if grant.isExpired() { end() }
  }

  package func end() {
    isEnded = true
    serve()
  }

  private func keep(_ packet: ByteBuffer) {
    if packets.count == capacity {
      waitingByteCount -= packets.removeFirst().readableBytes
      statistics.droppedFrames += 1
    }
    packets.append(packet)
    waitingByteCount += packet.readableBytes
    serve()
  }

  private func serve() {
    guard let waiter else { return }
    if isEnded {
      self.waiter = nil
      waiter.succeed(nil)
    } else if packets.count >= (hasGivenFirstPage ? RouterLimits.oggPacketsPerPage : 1) {
      self.waiter = nil
      hasGivenFirstPage = true
      let page = Array(packets.prefix(RouterLimits.oggPacketsPerPage))
      packets.removeFirst(page.count)
      let byteCount = page.reduce(0) { $0 + $1.readableBytes }
      waitingByteCount -= byteCount
      statistics.messagesSent += 1
      statistics.bytesSent += byteCount
      waiter.succeed(page)
    }
  }
}
