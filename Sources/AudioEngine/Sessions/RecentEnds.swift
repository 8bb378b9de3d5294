import DequeModule
import WireProtocol

/// How the last sessions ended, for those who ask afterwards.
struct RecentEnds {
  private static let maximumCount = 1_000

  private var ends: [SessionID: (diagnosis: Diagnosis, nanoseconds: UInt64)] = [:]
  private var order: Deque<SessionID> = []

  mutating func add(_ id: SessionID, _ diagnosis: Diagnosis, now: UInt64) {
    if ends.updateValue((diagnosis, now), forKey: id) == nil { order.append(id) }
    if order.count > Self.maximumCount, let oldest = order.popFirst() { ends[oldest] = nil }
  }

  /// The end of the session's last track.
  func diagnosis(of id: SessionID, now: UInt64) -> Diagnosis {
    guard let end = ends[id] else {
      return Diagnosis(state: .idle, summary: "Nothing plays: nothing has been asked for.")
    }
    var diagnosis = end.diagnosis
    diagnosis.ended?.agoMilliseconds = Int((now - end.nanoseconds) / 1_000_000)
    return diagnosis
  }
}
