import WireProtocol

/// What the director has done elsewhere: splices on threads of their own, timelines by the command handler.
struct PacerEffects: SessionEffects {
  let pacer: Pacer
  let splicer: Splicer
  let acquireTimeline: @Sendable (SessionID, UInt64, TrackKey, _ client: String?) -> Void

  func acquireTimeline(for id: SessionID, moveNumber: UInt64, key: TrackKey, client: String?) {
    acquireTimeline(id, moveNumber, key, client)
  }

  func render(_ splice: Splice, for id: SessionID, number: UInt64) {
    splicer.render(
      Splicer.Job(
        splice: splice,
        begin: { [pacer] packets in pacer.post(.spliced(id, number: number, packets)) },
        finish: { [pacer] packets in pacer.post(.spliceContinued(id, number: number, packets)) }))
  }

  var splicesAtOnce: Int { splicer.jobsAtOnce }
  var spliceLeadNanoseconds: UInt64 { Splicer.leadNanoseconds }
  /// By 0.6 ms for each on two cores, the last of them waits some 80 ms.
  var maximumWaitingSplices: Int { 128 }

  func post(_ message: SessionMessage) { pacer.post(message) }
  func report(_ error: ErrorReport, of id: SessionID) { pacer.onFailure(error, id) }
  func report(_ change: SessionChange, of id: SessionID) { pacer.onChange(change, id) }
}
