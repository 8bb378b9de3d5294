import Collections
import Logging
import NIOCore
import ServiceSupport
import WireProtocol

/// Repositories as radio stations: the session whose ID is a repository's plays that one's bed while somebody
/// listens and nothing else plays, and each piece of music joins it. So does a session of several repositories.
/// Confined to the data plane's loop.
final class Station {
  /// What is known of one repository's session.
  struct StationState {
    /// Pieces that wait until the one before has died away.
    var waiting: Deque<GeneratedMusic> = []
    /// When the next one may join.
    var nextPieceAt = NIODeadline.now()
    var isJoining = false
    /// What has joined last, for those who come while it sounds.
    var sounding: (message: ByteBuffer, endMilliseconds: Int)?
    /// No bed before this: the engine refused it.
    var bedNotBefore = NIODeadline.now()
    var isBedRequested = false
    /// Those who listen know why there is none.
    var hasReportedSilence = false
    var unheardSince: NIODeadline?
    /// The bed is being stopped, since nobody listens.
    var isStopping = false
    /// Somebody has stopped it: silent until somebody comes, or something happens.
    var isStoppedByUser = false
    /// Asked for by a listener, and kept from one bed to the next.
    var muted: [Score.Role] = []
  }

  /// The background score of a repository; nil for a session that belongs to none.
  var bed: (SessionID) -> Score? = { _ in nil }
  /// The sessions of several repositories in which a repository, `owner/name`, is heard too.
  var groups: (String) -> Set<SessionID> = { _ in [] }
  var states: [SessionID: StationState] = [:]
  private var shares = BedShares()
  private unowned let plane: DataPlane

  init(plane: DataPlane) {
    self.plane = plane
  }

  // MARK: The bed

  /// Somebody has begun to listen.
  func joined(_ session: RoutedSession) {
    guard bed(session.id) != nil else { return }
    states[session.id, default: StationState()].isStoppedByUser = false
    states[session.id]?.hasReportedSilence = false
    keepPlaying(session)
  }

  /// The engine has played on while the Router was away.
  func adopted(_ session: RoutedSession) {
    guard session.playsEndlessScore, bed(session.id) != nil else { return }
    states[session.id, default: StationState()].muted = session.snapshot.muted ?? []
    _ = shares.begin(session.id, for: session.grants)
  }

  /// Called once a second.
  func runHousekeeping() {
    for id in states.keys {
      guard let session = plane.store.sessions[id] else {
        states[id] = nil
        shares.end(id)
        continue
      }
      keepPlaying(session)
    }
  }

  private func keepPlaying(_ session: RoutedSession) {
    guard session.listenerCount > 0 else { return endWhereUnheard(session) }
    states[session.id]?.unheardSince = nil
    guard let bed = wantedBed(session) else { return performNext(session) }
    guard let client = shares.begin(session.id, for: session.grants) else { return reportBedLimit(session) }
    states[session.id]?.isBedRequested = true
    let request = PlayRequest(
      url: PlayRequest.scoreURL, score: bed, volume: session.volume,
      bitrateKilobits: session.queue.bitrateKilobits)
    ask(.play(request), session, for: client) { station, event in
      station.states[session.id]?.isBedRequested = false
      if case .error(let report) = event.body { station.failed(session, report) }
    }
  }

  /// The bed that is to begin now.
  private func wantedBed(_ session: RoutedSession) -> Score? {
    guard let state = states[session.id], !state.isStoppedByUser, !state.isBedRequested,
      state.bedNotBefore <= .now(), session.isAtRest, plane.fleet.isAnyEstablished
    else { return nil }
    return bed(session.id)
  }

  /// Whatever joins it is heard by nobody.
  private func endWhereUnheard(_ session: RoutedSession) {
    // What somebody else plays there is theirs to stop.
    guard session.playsEndlessScore, session.title == bed(session.id)?.title else {
      states[session.id]?.waiting.removeAll()
      return
    }
    let since = states[session.id]?.unheardSince ?? .now()
    states[session.id]?.unheardSince = since
    guard NIODeadline.now() - since >= .seconds(RouterLimits.emptyStationSeconds) else { return }
    states[session.id] = StationState(isStopping: true, muted: states[session.id]?.muted ?? [])
    ask(.stop, session) { _, _ in }
  }

  private func failed(_ session: RoutedSession, _ report: ErrorReport) {
    shares.end(session.id)
    plane.logger.info("the bed is not played: \(report)", metadata: ["session": "\(session.id)"])
    states[session.id]?.bedNotBefore = .now() + .seconds(RouterLimits.bedRetrySeconds)
    if report.code == .overloaded || report.code == .tooManySessions { reportOnce(session, report) }
  }

  /// Those who listen have as many beds as they may.
  private func reportBedLimit(_ session: RoutedSession) {
    states[session.id]?.bedNotBefore = .now() + .seconds(RouterLimits.bedRetrySeconds)
    let most = session.grants.map { BedShares.limit(for: $0) }.max() ?? RouterLimits.bedsPerClient
    let report = ErrorReport(
      .tooManySessions,
      "the repository \(session.id) is silent: the beds of \(most) repositories play for you, the most that one client may hear",
      hint: "stop listening to others", stage: .command)
    reportOnce(session, report)
  }

  /// Once, until somebody comes or a bed has played.
  private func reportOnce(_ session: RoutedSession, _ report: ErrorReport) {
    guard states[session.id]?.hasReportedSilence == false else { return }
    states[session.id]?.hasReportedSilence = true
    plane.logger.info("a repository is silent: \(report)", metadata: ["session": "\(session.id)"])
    session.broadcast(WebSocketFrames.text(EngineEvent(.error(report), sessionID: session.id).encoded()))
  }

  private func ask(
    _ action: EngineCommand.SessionAction, _ session: RoutedSession, for client: ClientID = .router,
    _ answered: @escaping (Station, EngineEvent) -> Void
  ) {
    let requester = Requester.routerStep(
      { [weak self] event in
        if let self { answered(self, event) }
      }, client: client)
    do throws(RequestError) {
      try plane.send(.session(session.id, action), for: requester)
    } catch {
      requester.refuse(error.report, sessionID: session.id)
    }
  }

  // MARK: What is heard over it

  /// Music was made of something that happened in a repository.
  func perform(_ music: GeneratedMusic) {
    performThere(music)
    for id in groups(music.event.repositoryName) { performThere(music.heard(in: id)) }
  }

  private func performThere(_ music: GeneratedMusic) {
    guard let session = plane.store.sessions[music.sessionID], session.listenerCount > 0 else { return }
    states[session.id, default: StationState()].isStoppedByUser = false
    guard session.isIdle || session.playsEndlessScore else {
      // Something else plays. Those who look are shown what they do not hear.
      return announce(music, session, nil)
    }
    states[session.id]?.waiting.append(music)
    if states[session.id]!.waiting.count > RouterLimits.maximumWaitingPieces,
      let skipped = states[session.id]?.waiting.popFirst()
    {
      announce(skipped, session, nil)
    }
    keepPlaying(session)
  }

  /// Has the next piece join once the one before has nearly died away.
  private func performNext(_ session: RoutedSession) {
    guard let state = states[session.id], !state.isJoining, state.nextPieceAt <= .now(),
      session.playsEndlessScore, session.state == .streaming, let music = state.waiting.first
    else { return }
    states[session.id]?.waiting.removeFirst()
    states[session.id]?.isJoining = true
    ask(.perform(music.score), session) { station, event in
      station.states[session.id]?.isJoining = false
      guard case .performing(let performing) = event.body else {
        return station.announce(music, session, nil)
      }
      station.announce(music, session, performing)
      station.waitOut(performing, session)
    }
  }

  private func waitOut(_ performing: ScorePlacement, _ session: RoutedSession) {
    let overlap = RouterLimits.pieceOverlapMilliseconds
    let position = session.snapshot.positionMilliseconds ?? performing.positionMilliseconds
    let wait = TimeAmount.milliseconds(Int64(max(0, performing.endMilliseconds - position - overlap)))
    states[session.id]?.nextPieceAt = .now() + wait
    plane.eventLoop.assumeIsolated().scheduleTask(in: wait) { [weak self] in
      self?.performNext(session)
    }
  }

  /// Tells all who listen of a piece.
  ///
  /// - Parameter performing: where it begins; nil where it is not to be heard.
  private func announce(_ music: GeneratedMusic, _ session: RoutedSession, _ performing: ScorePlacement?) {
    let message = WebSocketFrames.text(
      JSON.encode(MusicMessage(music, positionMilliseconds: performing?.positionMilliseconds)))
    session.broadcast(message)
    guard let performing else { return }
    states[session.id]?.sounding = (message, performing.endMilliseconds)
  }

  /// Tells one who has just come of the piece that sounds.
  func greet(_ listener: WebSocketListener, _ session: RoutedSession) {
    guard session.playsEndlessScore, let sounding = states[session.id]?.sounding,
      session.snapshot.positionMilliseconds ?? 0 < sounding.endMilliseconds
    else { return }
    listener.outlet.sendText(TextMessage(sounding.message, sharedBy: session.listenerCount))
  }

  // MARK: What the engine says

  func follow(_ body: EngineEvent.Body, _ session: RoutedSession) {
    guard states[session.id] != nil else { return }
    switch body {
    case .playing where session.playsEndlessScore:
      states[session.id]?.hasReportedSilence = false
      let muted = states[session.id]?.muted ?? []
      if !muted.isEmpty { ask(.mute(muted), session) { _, _ in } }
      performNext(session)
    case .muted(let roles): states[session.id]?.muted = roles
    case .ended(let reason, _): ended(session.id, reason)
    default: break
    }
  }

  private func ended(_ id: SessionID, _ reason: EngineEvent.EndReason) {
    if states[id]?.isBedRequested == false { shares.end(id) }
    states[id]?.nextPieceAt = .now()
    states[id]?.sounding = nil
    switch reason {
    case .stopped:
      if states[id]?.isStopping == false { states[id]?.isStoppedByUser = true }
      states[id]?.isStopping = false
    case .loadFailed: states[id]?.bedNotBefore = .now() + .seconds(RouterLimits.bedRetrySeconds)
    // Something else plays: they are shown, and not heard.
    case .replaced: announceWaiting(id)
    case .finished, .cleanup, .moved: break
    }
  }

  private func announceWaiting(_ id: SessionID) {
    guard let session = plane.store.sessions[id], let waiting = states[id]?.waiting else { return }
    states[id]?.waiting.removeAll()
    for music in waiting { announce(music, session, nil) }
  }
}
