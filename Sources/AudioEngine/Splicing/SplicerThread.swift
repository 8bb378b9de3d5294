import DequeModule
import ServiceSupport
import WireProtocol

/// One thread of the splicer. The first packet of a splice is waited for, and the others are needed 20 ms later at the
/// soonest: so the thread begins with others' splices before it finishes one, as long as there is time for that.
struct SplicerThread: ~Copyable {
  private struct Unfinished {
    let job: Splicer.Job
    let renderer: SpliceRenderer
    /// When it is to be finished before another is begun.
    let urgentNanoseconds: UInt64
  }

  /// How long the packets behind the first may wait: they take half a millisecond, and others' before them.
  private static let patienceNanoseconds: UInt64 = 12_000_000
  /// Renderers kept for the next splices: each has some 120 KB.
  private static let maximumSpareCount = 16

  private let splicer: Splicer
  private var spare: [SpliceRenderer] = []
  /// The oldest first.
  private var unfinished: Deque<Unfinished> = []

  init(splicer: Splicer) { self.splicer = splicer }

  /// Finishes a splice that is urgent, and begins another; blocks while there is none of either.
  mutating func work() {
    if let first = unfinished.first, first.urgentNanoseconds <= MonotonicClock.nowNanoseconds {
      finishFirst()
    }
    if let job = splicer.takeJob(waits: unfinished.isEmpty) { return begin(job) }
    finishFirst()
  }

  private mutating func begin(_ job: Splicer.Job) {
    do throws(ErrorReport) {
      let renderer = try takeRenderer()
      renderer.begin(job.splice)
      job.begin([try renderer.next()])
      guard job.splice.packetCount > 1 else { return release(renderer) }
      let urgent = MonotonicClock.nowNanoseconds + Self.patienceNanoseconds
      unfinished.append(Unfinished(job: job, renderer: renderer, urgentNanoseconds: urgent))
    } catch {
      job.begin([])
    }
  }

  private mutating func finishFirst() {
    guard let next = unfinished.popFirst() else { return }
    var packets: [[UInt8]] = []
    for _ in 1..<next.job.splice.packetCount {
      guard let packet = try? next.renderer.next() else { break }
      packets.append(packet)
    }
    next.job.finish(packets)
    release(next.renderer)
  }

  private mutating func takeRenderer() throws(ErrorReport) -> SpliceRenderer {
    if let renderer = spare.popLast() { return renderer }
    return try SpliceRenderer()
  }

  private mutating func release(_ renderer: SpliceRenderer) {
    if spare.count < Self.maximumSpareCount { spare.append(renderer) }
  }
}
