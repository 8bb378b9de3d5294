import WireProtocol

/// What a session has just sent, again: for a listener that joins, and is to hear something at once.
extension SessionDirector {
  /// Answers with the packets before the session's next one. Answer and packets are one message of the batch, so that
  /// what stands before them and after them are the packets before and after the joint.
  func sendBurst(_ milliseconds: Int, of id: SessionID, _ pendingRequest: PendingRequest) {
    guard case .router(let connection) = pendingRequest.requester else {
      let report = ErrorReport(
        .invalidCommand, "burst: packets go over the socket alone", hint: "play the session on the Router",
        stage: .command)
      return reject(pendingRequest, report, id)
    }
    guard admit(pendingRequest, to: id) else { return }
    guard let session = sessions[id], session.nextTick != nil else {
      let nothing = EngineEvent.Anchor(positionMilliseconds: 0, dueNanoseconds: 0)
      return answer(pendingRequest, EngineEvent(.burst(nothing, count: 0), sessionID: id))
    }
    let count = session.packetsHeard(atMost: milliseconds / WireLimits.packetDurationMilliseconds)
    let next = anchor(session)
    let duration = UInt64(count) * WireLimits.packetDurationNanoseconds
    let first = EngineEvent.Anchor(
      positionMilliseconds: next.positionMilliseconds - count * WireLimits.packetDurationMilliseconds,
      dueNanoseconds: next.dueNanoseconds - min(duration, next.dueNanoseconds))
    let event = EngineEvent(
      .burst(first, count: count), sessionID: id, requestID: pendingRequest.requestID)
    output.append(burst: event, of: id, to: connection) { session.cursor.forEachPrevious(count, $0) }
  }
}

extension Session {
  /// Packets before the next that are there to be read and that sound like what comes: none of before a seek.
  fileprivate func packetsHeard(atMost most: Int) -> Int {
    let position = cursor.positionMilliseconds - soundStartMilliseconds
    return min(most, max(0, position) / WireLimits.packetDurationMilliseconds, cursor.previousCount)
  }
}
