import ServiceSupport
import WireProtocol

/// A source whose bytes a decoder process reads. Where that process dies, another resumes in its place; what was made
/// so far is heard meanwhile.
final class DecodedSource {
  /// Before the first packet wanted from another process: what brings decoder and encoder to where they
  /// stood. After half as many a tone has a step at the joint.
  private static let prerollPackets = 50

  private let input: any MediaInput
  private let permit: HeldPermit
  private let pool: DecoderPool
  private(set) var facts: SourceFacts
  private var call: DecoderCall
  private var suspicion: DecoderCrashSuspicion
  /// It is behind a discontinuity, whose place in the track nothing says.
  private var isLaterPart = false

  /// Opens it. Blocks the calling worker, which holds its permit.
  init(
    _ source: MediaSource, _ input: any MediaInput, _ permit: HeldPermit, pool: DecoderPool
  ) throws(ErrorReport) {
    var suspicion = DecoderCrashSuspicion(of: source, pool)
    while true {
      do throws(DecoderFailure) {
        (call, facts) = try Self.open(input, permit, pool, isDedicated: suspicion.isSuspect)
        break
      } catch {
        try suspicion.note(error, at: 0)
      }
      try input.seek(to: 0)
    }
    self.input = input
    self.permit = permit
    self.pool = pool
    self.suspicion = suspicion
    if let segmented {
      facts.durationMilliseconds = segmented.durationMilliseconds
      facts.isDurationEstimated = false
    }
  }

  private var segmented: SegmentedInput? { input as? SegmentedInput }

  /// Goes on with the stream that follows at a discontinuity.
  ///
  /// - Returns: false where none does.
  func beginNextPart() throws(ErrorReport) -> Bool {
    guard let segmented, segmented.hasNextPart else { return false }
    segmented.beginNextPart()
    isLaterPart = true
    permit.acquire()
    do throws(DecoderFailure) {
      (call, _) = try Self.open(input, permit, pool, isDedicated: suspicion.isSuspect)
    } catch {
      try suspicion.note(error, at: 0)
      throw ErrorReport(.sourceCorrupt, "what follows a discontinuity cannot be opened", stage: .decode)
    }
    return true
  }

  private static func open(
    _ input: any MediaInput, _ permit: HeldPermit, _ pool: DecoderPool, isDedicated: Bool
  ) throws(DecoderFailure) -> (DecoderCall, SourceFacts) {
    let call = try pool.call(about: input, permit, isDedicated: isDedicated)
    try call.begin(.production)
    guard case .opened(let facts) = try call.next() else { throw call.broken() }
    return (call, facts)
  }

  /// Has packets made, from a timeline's start to the source's end.
  ///
  /// - Parameters:
  ///   - rest: waits while enough is made; called before another process resumes, so that one which delivers and
  ///   dies, again and again, gets no further than others.
  ///   - body: told what comes; answers with the call where that is due, and keeps count of the packets, also where
  ///   it throws.
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
          suspicion.clear(call.process, at: count)
          if case .ended = event { return }
        }
      } catch {
        try replaceCall(after: error, at: count, rest)
      }
    }
  }

  private func order(_ key: TrackKey, _ encoding: EncodingSettings, from count: Int) -> ProductionOrder {
    // A live source has no place to go back to.
    let hasPlace = !permit.isLive && !isLaterPart
    let preroll = hasPlace ? min(count, Self.prerollPackets) : 0
    let start =
      key.startMilliseconds + (count - preroll) * WireLimits.packetDurationMilliseconds
      - (segmented?.originMilliseconds ?? 0)
    return ProductionOrder(
      startMilliseconds: hasPlace ? max(0, start) : 0, seeks: segmented == nil, prerollPackets: preroll,
      volume: key.volume, allowsPassthrough: key.allowsPassthrough, encoding: encoding,
      kilobitsPerSecond: key.bitrateKilobits)
  }

  private func replaceCall(
    after failure: DecoderFailure, at count: Int, _ rest: () -> Void
  ) throws(ErrorReport) {
    var failure = failure
    suspicion.resetDeathCount()
    while true {
      try suspicion.note(failure, at: count)
      rest()
      permit.journal.record(
        .restart, since: MonotonicClock.nowNanoseconds, "its decoder died; another resumes")
      permit.acquire()
      try input.seek(to: 0)
      do throws(DecoderFailure) {
        (call, _) = try Self.open(input, permit, pool, isDedicated: suspicion.isSuspect)
        return
      } catch {
        failure = error
      }
    }
  }
}
