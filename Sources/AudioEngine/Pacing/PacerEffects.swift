import WireProtocol

/// What the director has done elsewhere: splices on threads of their own, timelines by the command handler.
struct PacerEffects: SessionEffects {
  let pacer: Pacer
  let acquireTimeline: @Sendable (SessionID, UInt64, TrackKey, _ client: String?) -> Void
  private let splicer: Splicer

  init(
    pacer: Pacer, splicer: Splicer,
    acquireTimeline: @escaping @Sendable (SessionID, UInt64, TrackKey, _ client: String?) -> Void
  ) {
    self.pacer = pacer
    self.splicer = splicer
    self.acquireTimeline = acquireTimeline
  }

  func acquireTimeline(for id: SessionID, moveNumber: UInt64, key: TrackKey, client: String?) {
    acquireTimeline(id, moveNumber, key, client)
  }

  func render(_ splices: [Splice], for id: SessionID, renderNumber: UInt64) {
    splicer.render(
      Splicer.Job(
        splices: splices,
        begin: { [pacer] packets in pacer.post(.spliced(id, renderNumber: renderNumber, packets)) },
        finish: { [pacer] packets in pacer.post(.spliceFinished(id, renderNumber: renderNumber, packets)) }))
  }

  var spliceLeadNanoseconds: UInt64 { Splicer.leadNanoseconds }
  var splicesAtOnce: Int { splicer.jobsAtOnce }

  func post(_ message: SessionMessage) { pacer.post(message) }
  func report(_ error: ErrorReport, of id: SessionID) { pacer.onFailure(error, id) }
  func report(_ change: SessionChange, of id: SessionID) { pacer.onChange(change, id) }
}
