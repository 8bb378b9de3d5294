import NATS
import NIOCore
import WireProtocol

/// Claims, takeovers and releases.
extension Homes {
  // MARK: What the data plane asks

  func epoch(of id: SessionID) -> UInt64? {
    if case .importing = setupStages[id] { return nil }
    return directory.ownEpoch(of: id)
  }

  func isHere(_ id: SessionID) -> Bool {
    setupStages[id] == nil && !releasing.contains(id) && directory.ownEpoch(of: id) != nil
  }

  var ownCount: Int { directory.ownSessions.count }

  func adopt(_ id: SessionID) {
    guard isKnown, !isStopping, directory.home(of: id) == nil, !pendingKeys.contains(id), retryAt <= .now()
    else { return }
    claim(id, replacing: nil)
  }

  func verify(_ id: SessionID) {
    guard directory.ownEpoch(of: id) != nil, pendingKeys.insert(id).inserted else { return }
    let context = NIOLoopBound(self, eventLoop: eventLoop)
    Task { [bucket, eventLoop] in
      let claim = await bucket.readHome(of: id)
      eventLoop.execute { context.value.verified(id, claim) }
    }
  }

  private func verified(_ id: SessionID, _ claim: HomeBucket.Claim) {
    pendingKeys.remove(id)
    take(claim, id, replacing: directory.home(of: id))
    // Another Router has written what is kept of it, and it is this one's all the same: it is read anew.
    guard case .won = claim, let epoch = directory.ownEpoch(of: id), setupStages[id] == nil,
      plane.store.sessions[id] == nil
    else { return }
    arrive(id, epoch: epoch, isTakeover: true)
  }

  // MARK: Claims

  /// - Parameter home: a Router's that is gone; nil for a session without one.
  func claim(_ id: SessionID, replacing home: HomeDirectory.Home?) {
    guard pendingKeys.insert(id).inserted else { return }
    let context = NIOLoopBound(self, eventLoop: eventLoop)
    Task { [bucket, eventLoop] in
      let claim = await bucket.claim(id, replacing: home?.epoch)
      eventLoop.execute { context.value.claimed(id, replacing: home, claim) }
    }
  }

  private func claimed(_ id: SessionID, replacing home: HomeDirectory.Home?, _ claim: HomeBucket.Claim) {
    pendingKeys.remove(id)
    take(claim, id, replacing: home)
    if directory.ownEpoch(of: id) == nil { unused.remove(id) }
    takeOverNext()
  }

  private func take(_ claim: HomeBucket.Claim, _ id: SessionID, replacing home: HomeDirectory.Home?) {
    let now = DataPlane.nowMilliseconds
    switch claim {
    case .won(let revision):
      update(id) { $0.answered(id, owner: $0.router, revision: revision, now: now) }
    case .found(nil, _):
      if let home { update(id) { $0.recordMissing(id, since: home, now: now) } }
    case .found(let owner?, let revision):
      update(id) { $0.answered(id, owner: owner, revision: revision, now: now) }
    case .failed(let failure):
      note(failure)
      logger.warning(
        "the session's home cannot be determined: \(failure)", metadata: ["session": "\(id)"])
      return changed(id, failure: Self.undecided(id, failure))
    }
    changed(id)
  }

  private static func undecided(_ id: SessionID, _ failure: KeyValueError) -> RequestError {
    RequestError(
      .routerUnavailable, "the home Router of the session \(id) cannot be determined: \(failure)",
      hint: "try again; GET /ready says what is wrong")
  }

  // MARK: Setup of claimed sessions

  func arrive(_ id: SessionID, epoch: UInt64, isTakeover: Bool) {
    if isTakeover { plane.statistics.takenOverSessions += 1 }
    plane.logger.debug("this Router is the session's home", metadata: ["session": "\(id)"])
    setupStages[id] = .importing
    load(id, epoch: epoch, isTakeover: isTakeover)
  }

  private func load(_ id: SessionID, epoch: UInt64, isTakeover: Bool) {
    guard imports.insert(id).inserted else { return }
    let context = NIOLoopBound(self, eventLoop: eventLoop)
    plane.state.importSession(id).whenComplete {
      context.value.imported(id, epoch: epoch, isTakeover: isTakeover, $0)
    }
  }

  private func imported(
    _ id: SessionID, epoch: UInt64, isTakeover: Bool,
    _ result: Result<(record: SessionRecord, answers: [StoredAnswer])?, any Error>
  ) {
    imports.remove(id)
    guard directory.ownEpoch(of: id) == epoch else {
      // It went, and came back meanwhile.
      if case .importing = setupStages[id], let epoch = directory.ownEpoch(of: id) {
        load(id, epoch: epoch, isTakeover: true)
      }
      return
    }
    switch result {
    case .success(let kept):
      failedImports.remove(id)
      if let kept { plane.restore(kept.record, answers: kept.answers) }
      locateEngine(id, epoch: epoch, isTakeover: isTakeover)
    case .failure(let error):
      if failedImports.insert(id).inserted {
        logger.error(
          "the session cannot be taken over yet: \(error); trying again",
          metadata: ["session": "\(id)"])
      }
      eventLoop.assumeIsolated().scheduleTask(in: .milliseconds(RouterLimits.homeRetryMilliseconds)) {
        [weak self] in
        guard let self, directory.ownEpoch(of: id) == epoch else { return }
        load(id, epoch: epoch, isTakeover: isTakeover)
      }
    }
  }

  private func locateEngine(_ id: SessionID, epoch: UInt64, isTakeover: Bool) {
    setupStages[id] = .locatingEngine
    plane.locateEngine(of: id) { [weak self] in self?.engineLocated(id, epoch: epoch) }
    // Of one that was nobody's it is not waited for what engines say: it is hardly ever played.
    if !isTakeover { engineLocated(id, epoch: epoch) }
  }

  private func engineLocated(_ id: SessionID, epoch: UInt64) {
    guard directory.ownEpoch(of: id) == epoch, setupStages.removeValue(forKey: id) != nil else { return }
    changed(id)
  }

  // MARK: Release

  /// Gives up what is no longer used. Called once a second.
  func releaseUnused() {
    let now = NIODeadline.now()
    for id in directory.ownSessions where !pendingKeys.contains(id) {
      guard setupStages[id] == nil, plane.store.sessions[id] == nil else {
        unused.markUsed(id)
        continue
      }
      if now - unused.markUnused(id, now: now) >= .seconds(RouterLimits.unusedHomeSeconds) { release(id) }
    }
  }

  private func release(_ id: SessionID) {
    guard let epoch = directory.ownEpoch(of: id), !isStopping, retryAt <= .now(),
      pendingKeys.insert(id).inserted
    else { return }
    unused.remove(id)
    releasing.insert(id)
    let context = NIOLoopBound(self, eventLoop: eventLoop)
    Task { [bucket, eventLoop] in
      let failure: KeyValueError?
      do throws(KeyValueError) {
        try await bucket.release(id, epoch: epoch)
        failure = nil
      } catch { failure = error }
      eventLoop.execute { context.value.released(id, epoch: epoch, failure) }
    }
  }

  private func released(_ id: SessionID, epoch: UInt64, _ failure: KeyValueError?) {
    pendingKeys.remove(id)
    releasing.remove(id)
    guard let failure else {
      let home = HomeDirectory.Home(router: directory.router, epoch: epoch)
      return update(id) { $0.recordMissing(id, since: home, now: DataPlane.nowMilliseconds) }
    }
    note(failure)
    changed(id)
    if failure == .wrongRevision || failure.isOutcomeUnknown { verify(id) }
  }
}
