/// A worker's use of the CPU permits: held while it produces, given up while it waits.
final class HeldPermit {
  private let permits: CPUPermits
  private let timeline: Timeline
  private var isHeld = false
  private var isPaused = false

  init(_ permits: CPUPermits, timeline: Timeline) {
    self.permits = permits
    self.timeline = timeline
  }

  deinit { release() }

  /// Whether the production is wanted no more.
  func isCancelled() -> Bool { timeline.isCancelled }

  /// Whether nothing has been produced yet, so that someone waits for the opening.
  var isOpening: Bool { timeline.phase == .opening }

  /// Where what happens to the production is noted.
  var journal: StageJournal { timeline.journal }

  func acquire() {
    guard !isHeld else { return }
    permits.acquire(for: timeline)
    isHeld = true
  }

  /// Whether another worker's need is greater.
  var isNeededMore: Bool { permits.isNeededMore(than: timeline) }

  func release() {
    guard isHeld else { return }
    isHeld = false
    permits.release()
  }

  /// A worker waiting for the network holds no permit.
  func pause() {
    guard isHeld else { return }
    isPaused = true
    release()
  }

  func unpause() {
    guard isPaused else { return }
    isPaused = false
    acquire()
  }
}
