import WireProtocol

/// Answers "why is it silent?".
extension SessionDirector {
  /// - Parameter reason: why it ends now; nil while it plays.
  func diagnosis(of session: Session, ended reason: EngineEvent.EndReason?, now: UInt64) -> Diagnosis {
    let stages = session.history.stages
    var diagnosis = Diagnosis(
      state: reason == nil ? session.machine.visible : .idle, summary: "", stages: stages,
      underruns: session.history.underruns, sent: session.history.sent,
      restarts: stages.count { $0.stage == .restart },
      lastError: session.history.lastError)
    if let since = session.bufferingSinceNanoseconds { diagnosis.underruns.add(since: since, until: now) }
    if let reason { diagnosis.ended = Diagnosis.Ended(reason: reason, agoMilliseconds: 0) }
    diagnosis.summary =
      reason.map { summary(of: diagnosis, ended: $0) } ?? summary(of: session, diagnosis, now)
    return diagnosis
  }

  private func summary(of diagnosis: Diagnosis, ended reason: EngineEvent.EndReason) -> String {
    switch (reason, diagnosis.lastError) {
    case (.loadFailed, let error?): "Nothing plays: the source could not be loaded. \(error.words)"
    case (.finished, let error?): "Nothing plays: the track broke off. \(error.words)"
    case (.loadFailed, nil): "Nothing plays: the source could not be loaded."
    case (.finished, nil): "Nothing plays: the track is over."
    case (.stopped, _): "Nothing plays: it was stopped."
    case (.replaced, _): "Another track took its place."
    case (.moved, _): "Another engine plays on."
    case (.cleanup, _): "Nothing plays: the session was idle for too long and was ended."
    }
  }

  private func summary(of session: Session, _ diagnosis: Diagnosis, _ now: UInt64) -> String {
    func seconds(since start: UInt64) -> String { "\((now - start) / 1_000_000_000) s" }
    if case .extracting = session.machine.state {
      return "It does not play yet: for \(seconds(since: session.history.askedNanoseconds)), "
        + "\(Self.opening(after: diagnosis.stages.last?.stage))."
    }
    if let since = session.pausedSinceNanoseconds {
      return "It has been paused for \(seconds(since: since))."
    }
    if let since = session.bufferingSinceNanoseconds {
      let what = diagnosis.restarts > 0 ? "; its connection broke \(diagnosis.restarts) times" : ""
      return "It waits for its source, which has sent nothing to play for \(seconds(since: since))\(what)."
    }
    if session.volume == 0 { return "It plays at volume 0." }
    if routers.isEmpty { return "It plays, and no Router is connected that could hear it." }
    if let owner = session.owner, !isConnected(owner.connection) {
      return "It plays, and the Router that is its home is not connected."
    }
    return "It plays: its packets go out. Where nothing is heard, the listener's own side is silent."
  }

  /// What is being done after a stage of opening.
  private static func opening(after stage: StageRecord.Stage?) -> String {
    switch stage {
    case nil: "it waits for a worker"
    case .queue, .extract: "its source is being looked up and connected to"
    case .resolve: "its source's server is being connected to"
    case .connect: "its source is being looked into for what it is"
    case .probe: "its first sound is being decoded"
    default: "it is about to begin"
    }
  }
}

extension ErrorReport {
  /// As a person reads it.
  fileprivate var words: String { hint.map { "\(message): \($0)." } ?? "\(message)." }
}
