import WireProtocol

/// What is done to an endless score while it sounds.
extension SessionDirector {
  func join(_ score: Score, _ session: Session, _ pendingRequest: PendingRequest) throws(ErrorReport) {
    let liveScore = try liveScore(of: session, for: "perform")
    let timelineID = ObjectIdentifier(session.lease.timeline)
    try liveScore.join(score) { [effects, id = session.id] result in
      effects.post(.joined(id, timelineID, result, pendingRequest))
    }
  }

  /// - Parameter timelineID: of what played when it was asked for.
  func joined(
    _ id: SessionID, _ timelineID: ObjectIdentifier, _ result: Result<ScorePlacement, ErrorReport>,
    _ pendingRequest: PendingRequest
  ) {
    switch result {
    case .success(let performing) where sessions[id].map { ObjectIdentifier($0.lease.timeline) } == timelineID:
      emit(.performing(performing), id, answering: pendingRequest)
    case .success: reject(pendingRequest, .superseded, id)
    case .failure(let report): reject(pendingRequest, report, id)
    }
  }

  func mute(_ roles: [Score.Role], _ session: Session, _ pendingRequest: PendingRequest) throws(ErrorReport) {
    let liveScore = try liveScore(of: session, for: "mute")
    // Each once, in one order.
    let roles = Score.Role.allCases.filter(roles.contains)
    liveScore.mute(Set(roles))
    session.muted = roles
    emit(.muted(roles), session.id, answering: pendingRequest)
  }

  private func liveScore(of session: Session, for command: String) throws(ErrorReport) -> LiveScoreControl {
    guard let liveScore = session.lease.timeline.liveScore else {
      throw ErrorReport(
        .invalidState, "\(command): the session \(session.id) plays no endless score",
        hint: "play a score without a length first", stage: .command)
    }
    return liveScore
  }
}
