import Glibc
import WireProtocol

/// A source whose bytes a decoder process reads. Where that process dies, another goes on in its place; what was made
/// so far is heard meanwhile.
final class DecodedSource {
  /// Before the first packet wanted from another process: what brings decoder and encoder to where they
  /// stood. After half as many a tone has a step at the joint.
  private static let primedPackets = 50
  /// Whoever has come so far since a process died under it has not killed it, or not at that place: a process is at
  /// most a turn ahead of what it has delivered.
  private static let acquittedPackets = 50
  /// Processes that may die in a row, or have no room for a thread, before it is given up.
  private static let maximumDeaths = 10
  private static let deathPauseMicroseconds: UInt32 = 50_000

  private let source: MediaSource
  private let input: any MediaInput
  private let permit: HeldPermit
  private let pool: DecoderPool
  private(set) var facts: SourceFacts
  private var call: DecoderCall
  /// Where a process died while it worked on this source.
  private var suspectedAt: Int?

  /// Opens it. Blocks the calling worker, which holds its permit.
  init(
    _ source: MediaSource, _ input: any MediaInput, _ permit: HeldPermit, pool: DecoderPool
  ) throws(ErrorReport) {
    var suspectedAt: Int?
    var deaths = 0
    while true {
      do throws(DecoderFailure) {
        (call, facts) = try Self.open(input, permit, pool, isApart: suspectedAt != nil)
        break
      } catch {
        try Self.pause(after: &deaths)
        if try Self.isSuspect(error) {
          guard suspectedAt == nil else { throw pool.crashing.add(source) }
          suspectedAt = 0
        }
      }
      try input.seek(to: 0)
    }
    self.source = source
    self.input = input
    self.permit = permit
    self.pool = pool
    self.suspectedAt = suspectedAt
  }

  private static func open(
    _ input: any MediaInput, _ permit: HeldPermit, _ pool: DecoderPool, isApart: Bool
  ) throws(DecoderFailure) -> (DecoderCall, SourceFacts) {
    let call = try pool.call(.production, input, permit, isApart: isApart)
    try call.begin(.production)
    guard case .opened(let facts) = try call.next() else { throw call.broken() }
    return (call, facts)
  }

  /// - Throws: why it ended, where that was no process's death.
  static func isSuspect(_ failure: DecoderFailure) throws(ErrorReport) -> Bool {
    switch failure {
    case .report(let report): throw report
    case .died(let wasWorking): return wasWorking
    }
  }

  /// Has packets made, from a timeline's start to the source's end.
  ///
  /// - Parameters:
  ///   - rest: waits while enough is made; called before another process goes on, so that one which delivers and dies,
  ///     again and again, gets no further than others.
  ///   - body: told what comes; answers with the call where that is due, and keeps count of the packets, also where it
  ///     throws.
  func produce(
    _ key: TrackKey, _ encoding: EncodingSettings, rest: () -> Void,
    _ body: (DecoderCall, DecoderCall.Event, inout Int) throws(DecoderFailure) -> Void
  ) throws(ErrorReport) {
    var count = 0
    while true {
      do throws(DecoderFailure) {
        try call.order(order(key, encoding, from: count))
        while true {
          let event = try call.next()
          try body(call, event, &count)
          if let suspectedAt, count >= suspectedAt + Self.acquittedPackets {
            self.suspectedAt = nil
            pool.acquit(call.process)
          }
          if case .ended = event { return }
        }
      } catch {
        rest()
        try replaceCall(after: error, at: count)
      }
    }
  }

  static func pause(after deaths: inout Int) throws(ErrorReport) {
    deaths += 1
    guard deaths <= maximumDeaths else {
      throw ErrorReport(
        .overloaded, "\(maximumDeaths) decoder processes in a row could not go on with the source",
        hint: "see the engine's log; perhaps the limit of processes or of memory is too low", stage: .decode)
    }
    if deaths > 1 { usleep(deathPauseMicroseconds) }
  }

  private func order(_ key: TrackKey, _ encoding: EncodingSettings, from count: Int) -> ProductionOrder {
    let primed = min(count, Self.primedPackets)
    return ProductionOrder(
      startMilliseconds: key.startMilliseconds + (count - primed) * WireLimits.packetDurationMilliseconds,
      primedPackets: primed, volume: key.volume, allowsPassthrough: key.allowsPassthrough, encoding: encoding,
      kilobitsPerSecond: key.bitrateKilobits)
  }

  private func replaceCall(after failure: DecoderFailure, at count: Int) throws(ErrorReport) {
    var failure = failure
    var deaths = 0
    while true {
      try Self.pause(after: &deaths)
      if try Self.isSuspect(failure) {
        guard suspectedAt == nil else { throw pool.crashing.add(source) }
        suspectedAt = count
      }
      permit.journal.record(
        .restart, since: MonotonicClock.nowNanoseconds, "its decoder died; another goes on")
      permit.acquire()
      try input.seek(to: 0)
      do throws(DecoderFailure) {
        (call, _) = try Self.open(input, permit, pool, isApart: suspectedAt != nil)
        return
      } catch {
        failure = error
      }
    }
  }
}
