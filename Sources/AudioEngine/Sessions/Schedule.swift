import WireProtocol

/// When packets are due: ticks of 2 ms on an absolute clock, ten to a packet.
///
/// A session keeps its phase, the tick modulo ten, for as long as it streams, so a tick looks only at the
/// sessions of its own phase.
package struct Schedule {
  package static let tickNanoseconds: UInt64 = 2_000_000
  package static let ticksPerPacket = WireLimits.packetDurationNanoseconds / tickNanoseconds
  /// A stall longer than this restarts the schedule; a shorter one is caught up with.
  package static let rebaseThresholdNanoseconds: UInt64 = 100_000_000

  private var baseNanoseconds: UInt64
  /// The next tick to be worked on.
  package private(set) var nextTick: UInt64 = 0

  package init(nowNanoseconds: UInt64) { baseNanoseconds = nowNanoseconds }

  package func time(of tick: UInt64) -> UInt64 { baseNanoseconds + tick * Self.tickNanoseconds }

  /// The phase a tick belongs to.
  package static func phase(of tick: UInt64) -> Int { Int(tick % ticksPerPacket) }

  /// The tick that is nearest to a time: at most half a tick away from it.
  package func tick(nearest nanoseconds: UInt64) -> UInt64 {
    guard nanoseconds >= baseNanoseconds else { return nextTick }
    return (nanoseconds - baseNanoseconds + Self.tickNanoseconds / 2) / Self.tickNanoseconds
  }

  package mutating func advance() { nextTick += 1 }

  /// The first tick that has not been worked on and is not in the past. Ticks that were passed over because
  /// nothing was due in them can be used after all.
  package func firstTick(after nowNanoseconds: UInt64) -> UInt64 {
    guard nowNanoseconds >= baseNanoseconds else { return nextTick }
    return (nowNanoseconds - baseNanoseconds) / Self.tickNanoseconds + 1
  }

  /// Makes sure that a tick is worked on.
  package mutating func include(_ tick: UInt64) { nextTick = min(nextTick, tick) }

  /// With nothing due, the schedule goes on from now.
  package mutating func catchUpIdle(nowNanoseconds: UInt64) {
    guard nowNanoseconds > time(of: nextTick) else { return }
    nextTick += (nowNanoseconds - time(of: nextTick)) / Self.tickNanoseconds + 1
  }

  /// After a stall: moves every later tick by what was lost, so that nobody hears a fast-forward.
  ///
  /// - Returns: whether there was one.
  package mutating func rebaseIfStalled(nowNanoseconds: UInt64) -> Bool {
    let due = time(of: nextTick)
    guard nowNanoseconds > due + Self.rebaseThresholdNanoseconds else { return false }
    baseNanoseconds += nowNanoseconds - due
    return true
  }
}
