import ServiceSupport
import WireProtocol

/// What happened to one session since its `play`: the engine's answer to "why is it silent?" is made of it.
struct SessionHistory {
  private static let maximumRecords = 32
  private static let maximumJournals = 4

  let askedNanoseconds: UInt64
  /// Journals of the last timelines it has been on: each says what its opening took.
  private var journals: [StageJournal]
  private var records: [StageRecord] = []
  private(set) var underruns = Diagnosis.Underruns()
  private(set) var sent = Diagnosis.Sent()
  var lastError: ErrorReport?
  private var hasSentFrame = false

  init(askedNanoseconds: UInt64, journal: StageJournal) {
    self.askedNanoseconds = askedNanoseconds
    journals = [journal]
  }

  mutating func moved(to journal: StageJournal) {
    guard journals.last !== journal else { return }
    journals.append(journal)
    if journals.count > Self.maximumJournals { journals.removeFirst() }
  }

  /// The first packet goes out.
  mutating func sentFrame(nowNanoseconds: UInt64) {
    guard !hasSentFrame else { return }
    hasSentFrame = true
    record(.firstFrameOut, endNanoseconds: nowNanoseconds)
  }

  /// One more packet goes out.
  mutating func sentPacket(byteCount: Int) {
    sent.packets += 1
    sent.bytes += byteCount
  }

  mutating func underran(since startNanoseconds: UInt64, until endNanoseconds: UInt64) {
    let duration = underruns.add(since: startNanoseconds, until: endNanoseconds)
    record(.underrun, endNanoseconds: endNanoseconds, milliseconds: duration)
  }

  mutating func failed(_ report: ErrorReport, nowNanoseconds: UInt64) {
    lastError = report
    record(.error, endNanoseconds: nowNanoseconds, detail: report.message)
  }

  /// Everything, in the order in which it ended.
  var stages: [StageRecord] {
    let opened = journals.flatMap(\.entries).map { entry in
      StageRecord(
        stage: entry.stage, atMilliseconds: at(entry.endNanoseconds), milliseconds: entry.milliseconds,
        detail: entry.detail)
    }
    return (opened + records).sorted { $0.atMilliseconds < $1.atMilliseconds }
  }

  private mutating func record(
    _ stage: StageRecord.Stage, endNanoseconds: UInt64, milliseconds: Double? = nil, detail: String? = nil
  ) {
    records.append(
      StageRecord(
        stage: stage, atMilliseconds: at(endNanoseconds), milliseconds: milliseconds, detail: detail))
    if records.count > Self.maximumRecords { records.remove(at: 1) }
  }

  private func at(_ nanoseconds: UInt64) -> Double {
    (Double(nanoseconds) - Double(askedNanoseconds)) / 1e6
  }
}

extension Diagnosis.Underruns {
  /// Counts one more.
  ///
  /// - Returns: how long it was, in milliseconds.
  @discardableResult
  mutating func add(since startNanoseconds: UInt64, until endNanoseconds: UInt64) -> Double {
    let duration = MonotonicClock.milliseconds(from: startNanoseconds, to: endNanoseconds)
    count += 1
    totalMilliseconds += duration
    longestMilliseconds = max(longestMilliseconds, duration)
    return duration
  }
}
