import Glibc
import ServiceSupport
import WireProtocol

/// A worker's use of the CPU permits, and of its slot: both are held while it produces, and given up while it waits.
final class HeldPermit {
  /// How often a waiting worker looks whether it is still wanted.
  private static let waitSliceNanoseconds: UInt64 = 50_000_000

  private let permits: CPUPermits
  private let production: any Production
  private let slot: WorkerSlot
  /// Since when the permit is held; nil while it is not.
  private var heldNanoseconds: UInt64?
  private var isPaused = false
  /// The decoder process's thread that works while the permit is held; nil while it is the worker itself.
  var decoderThreadID: Int32?

  init(_ permits: CPUPermits, for production: any Production, slot: WorkerSlot) {
    self.permits = permits
    self.production = production
    self.slot = slot
  }

  deinit { release() }

  /// Whether the production is wanted no more.
  func isCancelled() -> Bool { production.isCancelled }

  /// Whether the track is not ready yet, so that someone waits for it.
  var isOpening: Bool { production.isOpening }

  /// Whether the production has no end.
  var isLive: Bool { production.isLive }

  func note(_ metadata: StreamMetadata) { production.note(metadata) }

  /// Where what happens to the production is noted.
  var journal: StageJournal { production.journal }

  /// For whom it is produced.
  var client: String? { production.client }

  func acquire() {
    isPaused = false
    guard heldNanoseconds == nil else { return }
    slot.acquire()
    permits.acquire(for: production, threadID: decoderThreadID ?? EngineThread.currentID)
    heldNanoseconds = MonotonicClock.nowNanoseconds
  }

  /// Whether another worker's need is greater.
  var isNeededMore: Bool { permits.isNeededMore(than: production) }

  func release() {
    guard heldNanoseconds != nil else { return }
    heldNanoseconds = nil
    permits.release(by: production)
  }

  /// Ends a time slice: gives permit and slot to a worker that waits for them. Call `acquire` next.
  func endTimeSlice() {
    release()
    slot.yieldIfWanted()
  }

  /// Lets others have the CPU where a time slice is over and no packet is made yet. What makes packets is asked
  /// between them, and would wait twice.
  func yieldIfWanted() {
    guard let since = heldNanoseconds, isOpening, permits.isWanted,
      MonotonicClock.nowNanoseconds >= since + TimeSlice.longestNanoseconds
    else { return }
    endTimeSlice()
    acquire()
  }

  /// A worker waiting for the network holds no permit and no slot.
  func pause() {
    isPaused = isPaused || heldNanoseconds != nil
    release()
    slot.release()
  }

  /// Blocks the calling worker until a time of `MonotonicClock`, without a permit.
  ///
  /// - Throws: `superseded` where the production is wanted no more.
  func wait(untilNanoseconds end: UInt64) throws(ErrorReport) {
    pause()
    while case let now = MonotonicClock.nowNanoseconds, now < end {
      guard !isCancelled() else { throw .superseded }
      usleep(UInt32(min(end - now, Self.waitSliceNanoseconds) / 1_000))
    }
  }

  func unpause() {
    if isPaused { acquire() }
  }
}
