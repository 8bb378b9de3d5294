import DequeModule
import ServiceSupport
import WireProtocol

/// One thread of the splicer. A cut needs the first packets of a job, and the others 20 ms later at the soonest: so the
/// thread begins with others' jobs before it finishes one, as long as there is time for that.
struct SplicerThread: ~Copyable {
  private struct Unfinished {
    let job: Splicer.Job
    let renderer: SpliceRenderer
    let packetCount: Int
    /// When it is to be finished before another is begun.
    let urgentNanoseconds: UInt64
  }

  /// How long a job may wait to be finished: what is cut at once needs its second packet 20 ms later, and what fades
  /// out first another 20 ms later.
  private static let patienceNanoseconds: UInt64 = 8_000_000
  private static let patienceBehindFadeNanoseconds: UInt64 = 25_000_000
  /// Renderers kept for the next splices: each has some 120 KB.
  private static let maximumSpareCount = 16

  private let splicer: Splicer
  private var spare: [SpliceRenderer] = []
  /// The most urgent first.
  private var unfinished: Deque<Unfinished> = []

  init(splicer: Splicer) { self.splicer = splicer }

  /// Finishes a job that is urgent, and begins another; blocks while there is none of either.
  mutating func work() {
    if let first = unfinished.first, first.urgentNanoseconds <= MonotonicClock.nowNanoseconds {
      finishFirst()
    }
    if let job = splicer.takeJob(waits: unfinished.isEmpty) { return begin(job) }
    finishFirst()
  }

  private mutating func begin(_ job: Splicer.Job) {
    do throws(ErrorReport) {
      var packets: [[UInt8]] = []
      for splice in job.splices {
        let renderer = try takeRenderer()
        renderer.begin(splice)
        packets.append(try renderer.next())
        if splice.packetCount > 1 {
          keep(job, renderer, packetCount: splice.packetCount - 1)
        } else {
          release(renderer)
        }
      }
      job.begin(packets)
    } catch {
      job.begin([])
    }
  }

  private mutating func keep(_ job: Splicer.Job, _ renderer: SpliceRenderer, packetCount: Int) {
    let patience =
      job.splices.count > 1 ? Self.patienceBehindFadeNanoseconds : Self.patienceNanoseconds
    let urgent = MonotonicClock.nowNanoseconds + patience
    let place = unfinished.firstIndex { $0.urgentNanoseconds > urgent } ?? unfinished.endIndex
    unfinished.insert(
      Unfinished(job: job, renderer: renderer, packetCount: packetCount, urgentNanoseconds: urgent), at: place
    )
  }

  private mutating func finishFirst() {
    guard let next = unfinished.popFirst() else { return }
    defer { release(next.renderer) }
    var packets: [[UInt8]] = []
    for _ in 0..<next.packetCount {
      guard let packet = try? next.renderer.next() else { break }
      packets.append(packet)
    }
    next.job.finish(packets)
  }

  private mutating func takeRenderer() throws(ErrorReport) -> SpliceRenderer {
    if let renderer = spare.popLast() { return renderer }
    return try SpliceRenderer()
  }

  private mutating func release(_ renderer: SpliceRenderer) {
    if spare.count < Self.maximumSpareCount { spare.append(renderer) }
  }
}
