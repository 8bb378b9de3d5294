import Glibc
import Synchronization
import WireProtocol

/// Refuses a transcode that the machine cannot carry beside those it has, so that everyone's sound does not
/// break because of one more. What needs no encoder (passthrough, what is cached, what others play already)
/// never comes here.
///
/// Every worker tells what its packets cost in CPU time. Demand is that cost, times 50 packets a second,
/// times the transcodes that are not done; capacity is a share of all cores. The engine measures a second of
/// encoding as it starts, so that a rush of plays right then is judged too. While nothing else is being
/// transcoded, everything enters.
package final class TranscodeAdmission: Sendable {
  fileprivate struct State {
    var admitted: [ObjectIdentifier: any Production] = [:]
    /// What was measured, the older the less.
    var measuredPackets = 0.0
    var measuredNanoseconds = 0.0
    var refused = 0
  }

  /// How fast the average follows: what was measured this many packets ago counts for a third.
  private static let averagedPackets = 500.0
  /// A second of sound: less says little.
  fileprivate static let leastPackets = 50.0
  /// A session that plays something else gives its old place back a moment later: it is waited for so long.
  private static let tries = 10
  private static let microsecondsBetweenTries: UInt32 = 20_000

  package let capacityCores: Double
  private let state = Mutex(State())

  /// - Parameter share: of all cores that this process has, what transcoding may use.
  package init(cores: Double, share: Double) { capacityCores = cores * share }

  /// Gives a production its place, which it keeps until `leave`.
  ///
  /// - Parameters:
  ///   - mustEnter: it is counted and not refused: its session plays already.
  ///   - waiting: called before and after waiting for a place, with true and false.
  /// - Throws: `overloaded`.
  package func enter(
    _ production: any Production, mustEnter: Bool, waiting: (Bool) -> Void = { _ in }
  ) throws(ErrorReport) {
    for _ in 0..<Self.tries {
      if tryToEnter(production, mustEnter: mustEnter) { return }
      waiting(true)
      usleep(Self.microsecondsBetweenTries)
      waiting(false)
      guard !production.isCancelled else { throw .superseded }
    }
    throw refuse()
  }

  /// The production has ended.
  package func leave(_ production: any Production) {
    state.withLock { $0.admitted[ObjectIdentifier(production)] = nil }
  }

  /// Takes a worker's measurement.
  package func record(packets: Int, nanoseconds: UInt64) {
    // On the way to a far position nothing is made.
    guard packets > 0 else { return }
    let kept = Self.averagedPackets / (Self.averagedPackets + Double(packets))
    state.withLock { state in
      state.measuredPackets = state.measuredPackets * kept + Double(packets)
      state.measuredNanoseconds = state.measuredNanoseconds * kept + Double(nanoseconds)
    }
  }

  /// Figures for `/metrics`.
  package struct Statistics: Sendable, Equatable {
    package var transcodes: Int
    package var packetSeconds: Double
    package var demandCores: Double
    package var refused: Int
  }

  package var statistics: Statistics {
    state.withLock { state in
      Statistics(
        transcodes: state.count, packetSeconds: state.packetNanoseconds / 1e9,
        demandCores: state.demandCores(of: state.count), refused: state.refused)
    }
  }

  private func tryToEnter(_ production: any Production, mustEnter: Bool) -> Bool {
    state.withLock { state in
      let others = state.count
      guard mustEnter || others == 0 || state.demandCores(of: others + 1) <= capacityCores else {
        return false
      }
      state.admitted[ObjectIdentifier(production)] = production
      return true
    }
  }

  private func refuse() -> ErrorReport {
    let (count, each) = state.withLock { state in
      state.refused += 1
      return (state.count, state.demandCores(of: 1))
    }
    func text(_ cores: Double) -> String { String(Double((cores * 1_000).rounded()) / 1_000) }
    return ErrorReport(
      .overloaded,
      "\(count) tracks are being transcoded at \(text(each)) cores each, and all may use "
        + "\(text(capacityCores)) cores",
      hint: "try again when one has ended, play an Opus source at volume 1, or raise --transcode-cpu-share",
      stage: .queue)
  }
}

extension TranscodeAdmission.State {
  /// A cancelled production ends within a moment, and gives its place back at once.
  fileprivate var count: Int { admitted.values.count { !$0.isCancelled } }

  /// 0 until there is a measurement.
  fileprivate var packetNanoseconds: Double {
    measuredPackets < TranscodeAdmission.leastPackets ? 0 : measuredNanoseconds / measuredPackets
  }

  fileprivate func demandCores(of count: Int) -> Double {
    Double(count) * packetNanoseconds / Double(WireLimits.packetDurationNanoseconds)
  }
}
