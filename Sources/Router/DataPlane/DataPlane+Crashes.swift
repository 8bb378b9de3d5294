import Logging
import NIOCore
import ServiceSupport
import WireProtocol

/// A play that waits until its address, on which the engine may have died, may be tried.
struct HeldPlay {
  let play: StartingPlay
  let requesterID: RequesterID?
}

/// A track that kills the engine is asked for twice at most: what is sent, held and refused (`CrashTracker`).
extension DataPlane {
  static var nowMilliseconds: Int { Int(MonotonicClock.nowNanoseconds / 1_000_000) }
  static var unixMilliseconds: Int { Int(Grant.nowMilliseconds) }

  // MARK: Before a play or prepare is sent

  /// Notes that it is about to be sent, to be written with what is written next.
  ///
  /// - Parameter heldAt: when it first had to wait, by `nowMilliseconds`.
  /// - Throws: `sourceCrashesEngine` where it is refused.
  /// - Returns: false where it has to wait.
  func plan(_ request: PlayRequest, heldAt: Int?) throws(RequestError) -> Bool {
    // Nothing is on its way to an engine that is away; sending says so.
    guard fleet.isAnyEstablished, let tag = request.tag else { return true }
    let now = Self.nowMilliseconds
    switch crashes.verdict(request.url, tag: tag, waited: now - (heldAt ?? now), now: now) {
    case .refuse(let milliseconds): throw requestError(of: request.url, milliseconds)
    case .wait: return false
    case .send:
      crashes.plan(tag, request.url, now: now)
      noteCrashes()
      return true
    }
  }

  /// For what is asked of the engine without a tag.
  func checkIsNotRefused(_ address: String) throws(RequestError) {
    if case .refuse(let milliseconds) = crashes.verdict(address, now: Self.nowMilliseconds) {
      throw requestError(of: address, milliseconds)
    }
  }

  private func requestError(of address: String, _ milliseconds: Int) -> RequestError {
    let seconds = (milliseconds + 999) / 1_000
    return RequestError(
      ErrorReport(
        .sourceCrashesEngine,
        "the engine died \(CrashLimits.maximumDeaths) times while \(address) was opened or played; "
          + "it is refused for another \(seconds) s",
        hint: "play something else; the server's operator finds the address in the Router's log",
        stage: .decode))
  }

  // MARK: Waiting for a trial

  /// Keeps a play until the suspect before it has been tried.
  func hold(_ play: StartingPlay, _ session: RoutedSession, for requesterID: RequesterID?) {
    heldPlays[session.id] = HeldPlay(play: play, requesterID: requesterID)
    let wait = TimeAmount.milliseconds(Int64(CrashLimits.precedenceMilliseconds))
    eventLoop.assumeIsolated().scheduleTask(in: wait) { [weak self] in self?.watchTrials() }
  }

  /// Lets a play that is held go, since another has taken its place.
  func release(_ id: SessionID) {
    guard let held = heldPlays.removeValue(forKey: id) else { return }
    takeRequester(held.requesterID).refuse(.overtaken, sessionID: id)
  }

  private func takeHeld(_ id: SessionID) -> HeldPlay? {
    store.sessions[id]?.playback.isHeld = false
    return heldPlays.removeValue(forKey: id)
  }

  /// A client's own comes to nothing; what it was to replace is asked for again.
  private func drop(_ held: HeldPlay, _ id: SessionID, _ report: ErrorReport) {
    takeRequester(held.requesterID).refuse(report, sessionID: id)
    if let session = store.sessions[id] { run(session) { $0.resume(without: held.play, &$1) } }
  }

  /// The engine is away: they are asked for at its return.
  func failHeldPlays(_ report: ErrorReport) {
    for id in Array(heldPlays.keys) {
      guard let held = takeHeld(id) else { continue }
      let requester = takeRequester(held.requesterID)
      requester.refuse(report, sessionID: id)
      guard held.play.entry != nil,
        let session = try? store.session(id, for: requester.client, limitFactor: requester.limitFactor)
      else { continue }
      run(session) { playback, _ in playback.deferHeld(held.play) }
    }
  }

  /// Once a second, and when a trial may have ended.
  func watchTrials() {
    guard fleet.isAnyEstablished else { return }
    retainLivePlays()
    crashes.advance(now: Self.nowMilliseconds)
    saveCrashes()
    let latest = Self.nowMilliseconds - Int(RouterLimits.answerSeconds) * 1_000
    for (id, held) in heldPlays
    where held.play.entry != nil && (held.play.heldAtMilliseconds ?? latest) < latest {
      _ = takeHeld(id)
      drop(
        held, id,
        ErrorReport(
          .engineUnavailable, "other tracks on which the engine may have died are tried first",
          hint: "try again", stage: .queue))
    }
    resumeHeldPlays()
  }

  /// Asks for those that may be tried now, the one that has waited longest first; after it the next has to wait.
  private func resumeHeldPlays() {
    let inOrder = heldPlays.sorted {
      ($0.value.play.heldAtMilliseconds ?? 0) < ($1.value.play.heldAtMilliseconds ?? 0)
    }
    for (id, held) in inOrder {
      let now = Self.nowMilliseconds
      let waited = now - (held.play.heldAtMilliseconds ?? now)
      let request = held.play.request
      guard crashes.verdict(request.url, tag: request.tag, waited: waited, now: now) != .wait else {
        continue
      }
      _ = takeHeld(id)
      let requester = requester(held.requesterID)
      do throws(RequestError) {
        let session = try store.session(id, for: requester.client, limitFactor: requester.limitFactor)
        // What is deferred by now may be another.
        guard held.play.entry != nil || session.playback.plan.deferredPlay?.tag == request.tag else {
          takeRequester(held.requesterID).refuse(.overtaken, sessionID: id)
          continue
        }
        if requester.client != .router { try state.prepare(session, for: requester.client) }
        run(session) { playback, _ in playback.begin(held.play, for: held.requesterID) }
      } catch {
        drop(held, id, error.report)
      }
    }
  }

  // MARK: What the engine does

  /// The play of that tag has its first packets.
  func noteBegun(_ tag: String) {
    let now = Self.nowMilliseconds
    let before = crashes.trialEndsMilliseconds
    crashes.began(tag, now: now)
    guard let end = crashes.trialEndsMilliseconds, end != before else { return }
    eventLoop.assumeIsolated().scheduleTask(in: .milliseconds(Int64(end - now))) { [weak self] in
      self?.watchTrials()
    }
  }

  /// What it plays when the connection to it is made again.
  func noteCrashes(_ snapshot: SessionSnapshot) {
    guard let tag = snapshot.tag, let url = snapshot.url, url != PlayRequest.scoreURL else { return }
    crashes.plan(tag, url, now: Self.nowMilliseconds)
    crashes.sent(tag)
    if snapshot.state != .extracting { noteBegun(tag) }
  }

  /// The connection is lost.
  func engineIsLost(_ engine: RoutedEngine) {
    retainLivePlays()
    engine.link.hasSaidWhy ? crashes.engineStopped(playTags(on: engine)) : crashes.engineIsLost()
    noteCrashes()
  }

  /// The plays that are an engine's; nil where there is no other.
  private func playTags(on engine: RoutedEngine) -> Set<String>? {
    guard store.firstEngine == .none else { return nil }
    return Set(sessions(of: engine).flatMap(\.playback.liveTags))
  }

  /// An engine is there again, or another instead of it.
  func engineIsBack(isSame: Bool, _ engine: RoutedEngine) {
    let tags = playTags(on: engine)
    guard !isSame else {
      // What it still opens it names.
      crashes.engineIsSame(tags)
      return saveCrashes()
    }
    guard let blamed = crashes.engineDied(now: Self.nowMilliseconds, tags) else { return saveCrashes() }
    statistics.engineDeaths += 1
    for address in blamed.prefix(CrashLimits.maximumLoggedAddresses) {
      if case .refuse = crashes.verdict(address, now: Self.nowMilliseconds) {
        logger.error(
          "the engine crashed on \(address): refused for \(CrashLimits.refusedMilliseconds / 1_000) s")
      } else {
        logger.warning("the engine may have crashed on \(address): retrying it in isolation")
      }
    }
    saveCrashes()
  }

  // MARK: On disk

  /// Adds the changes to the next transaction.
  ///
  /// - Returns: whether there are any.
  @discardableResult func noteCrashes() -> Bool {
    let changes = crashes.takeChanges(now: Self.nowMilliseconds, unixMilliseconds: Self.unixMilliseconds)
    if !changes.isEmpty { state.add(changes) }
    return !changes.isEmpty
  }

  private func saveCrashes() {
    if noteCrashes() { state.write {} }
  }

  /// What has come to nothing on whatever way is not held against anybody.
  private func retainLivePlays() {
    guard crashes.hasPlays else { return }
    var live: Set<String> = []
    for session in store.sessions.values { live.formUnion(session.playback.liveTags) }
    for held in heldPlays.values { live.formUnion([held.play.request.tag].compactMap(\.self)) }
    crashes.retain(live.contains)
  }
}
