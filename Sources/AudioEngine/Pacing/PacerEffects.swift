import WireProtocol

/// What the director has done elsewhere: splices on their own thread, timelines by the command handler.
struct PacerEffects: SessionEffects {
  let pacer: Pacer
  let acquireTimeline: @Sendable (SessionID, UInt64, TrackKey, _ client: String?) -> Void
  private let splicer = Splicer()

  init(
    pacer: Pacer,
    acquireTimeline: @escaping @Sendable (SessionID, UInt64, TrackKey, _ client: String?) -> Void
  ) {
    self.pacer = pacer
    self.acquireTimeline = acquireTimeline
  }

  func acquireTimeline(for id: SessionID, moveNumber: UInt64, key: TrackKey, client: String?) {
    acquireTimeline(id, moveNumber, key, client)
  }

  func render(_ splices: [Splice], for id: SessionID, transitionNumber: UInt64) {
    splicer.render(splices) { [pacer] packets in
      pacer.post(.spliced(id, transitionNumber: transitionNumber, packets))
    }
  }

  var spliceLeadNanoseconds: UInt64 { splicer.leadNanoseconds }
  var hasRoomForSplices: Bool { splicer.hasRoom }

  func post(_ message: SessionMessage) { pacer.post(message) }
  func report(_ error: ErrorReport, of id: SessionID) { pacer.onFailure(error, id) }
  func report(_ change: SessionChange, of id: SessionID) { pacer.onChange(change, id) }
}
