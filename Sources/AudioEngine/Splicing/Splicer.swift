import Dispatch
import Synchronization

/// Renders splices, one after the other, on a thread that is not the pacer's: each takes about two milliseconds.
package final class Splicer: Sendable {
  /// What one splice may take on a small machine.
  private static let nanosecondsASplice: UInt64 = 2_500_000
  /// From asking to the packets' being there, with no other splice waiting.
  private static let leastNanoseconds: UInt64 = 4_000_000

  /// Splices that may wait, so that as many sessions as there are workers can be cut at once: with so many, a
  /// command is done some 170 ms after it was asked for.
  private static let maximumWaiting = 64

  private let queue = DispatchQueue(label: "antiphon.splicer", qos: .userInteractive)
  /// Splices, of which a seek has two.
  private let waiting = Atomic<Int>(0)

  package init() {}

  /// How long before it is needed a splice should be asked for.
  var leadNanoseconds: UInt64 {
    Self.leastNanoseconds + UInt64(waiting.load(ordering: .relaxed)) * Self.nanosecondsASplice
  }

  /// Whether the splices of another cut may wait.
  var hasRoom: Bool { waiting.load(ordering: .relaxed) < Self.maximumWaiting }

  /// Renders the packets of splices that follow one another; none where that fails, which leaves a click and
  /// nothing worse.
  func render(_ splices: [Splice], _ deliver: @escaping @Sendable ([[UInt8]]) -> Void) {
    waiting.add(splices.count, ordering: .relaxed)
    queue.async { [self] in
      let packets = (try? splices.flatMap { try $0.render() }) ?? []
      waiting.subtract(splices.count, ordering: .relaxed)
      deliver(packets)
    }
  }
}
