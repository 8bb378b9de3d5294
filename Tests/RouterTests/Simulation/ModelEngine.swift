import WireProtocol

/// A model of the engine with one session, as `docs/wire-protocol.md` describes it: a value, driven by steps.
struct ModelEngine {
  struct Play {
    var request: PlayRequest
    var state = SessionSnapshot.State.extracting
    var position: Int
    /// Of the play that is to be answered.
    var requestID: String?
  }

  struct Next {
    var request: PlayRequest
    /// Nil once the prepare is answered.
    var requestID: String?
  }

  enum Message {
    case event(EngineEvent)
    case packets(Int)
  }

  static let durationMilliseconds = 40_000

  let id: SessionID
  private(set) var startedAt = 1
  private(set) var play: Play?
  private(set) var next: Next?
  /// What the connected Router has not read yet.
  private(set) var outbox: [Message] = []
  /// Addresses of which a play has come to its end, or was refused for good.
  private(set) var overAddresses: Set<String> = []
  /// Tags that have played.
  private(set) var begunTags: Set<String> = []

  init(id: SessionID) { self.id = id }

  // MARK: The connection

  /// A Router connects: what was said before is not for it.
  mutating func connect() -> Hello {
    outbox = []
    return hello
  }

  private var hello: Hello {
    var sessions: [SessionSnapshot] = []
    if let play {
      var snapshot = SessionSnapshot(sessionID: id, state: play.state)
      snapshot.url = play.request.url
      snapshot.tag = play.request.tag
      snapshot.volume = play.request.volume
      snapshot.loop = false
      snapshot.positionMilliseconds = play.position
      if play.state != .extracting { snapshot.durationMilliseconds = Self.durationMilliseconds }
      if play.state == .streaming { snapshot.dueNanoseconds = 0 }
      sessions.append(snapshot)
    }
    return Hello(
      startedAtMilliseconds: startedAt, nowNanoseconds: 0,
      limits: Hello.Limits(maximumWorkers: 1, maximumSessions: 1, readAheadMilliseconds: 0),
      sessions: sessions)
  }

  mutating func takeMessage() -> Message? { outbox.isEmpty ? nil : outbox.removeFirst() }

  mutating func disconnect() {
    outbox = []
    play?.requestID = nil
    next?.requestID = nil
  }

  mutating func crash() {
    disconnect()
    play = nil
    next = nil
    startedAt += 1
  }

  private mutating func emit(_ body: EngineEvent.Body, _ requestID: String? = nil) {
    outbox.append(.event(EngineEvent(body, sessionID: id, requestID: requestID)))
  }

  private mutating func refuse(_ code: ErrorCode, _ requestID: String?) {
    emit(.error(ErrorReport(code, "the model refuses", stage: .command)), requestID)
  }

  // MARK: Commands

  mutating func take(_ action: EngineCommand.SessionAction, _ requestID: String?, error: ErrorCode?) {
    switch action {
    case .play(let request):
      if let error {
        if error == .invalidSource { overAddresses.insert(request.url) }
        return refuse(error, requestID)
      }
      end(.replaced)
      dropNext()
      begin(request, requestID)
    case .prepare(let request):
      dropNext()
      guard play != nil else { return refuse(.noSuchSession, requestID) }
      next = Next(request: request, requestID: requestID)
    case .unprepare:
      dropNext()
      emit(.status(hello.sessions.first ?? SessionSnapshot(sessionID: id, state: .idle)), requestID)
    case .stop:
      guard play != nil else { return refuse(.noSuchSession, requestID) }
      dropNext()
      end(.stopped, requestID)
    case .pause, .resume, .seek, .volume: change(action, requestID)
    default: refuse(.invalidState, requestID)
    }
  }

  private mutating func change(_ action: EngineCommand.SessionAction, _ requestID: String?) {
    guard let state = play?.state, state != .extracting else {
      return refuse(play == nil ? .noSuchSession : .invalidState, requestID)
    }
    switch action {
    case .pause:
      play!.state = .paused
      emit(.paused(positionMilliseconds: play!.position), requestID)
    case .resume:
      play!.state = .streaming
      emit(.resumed(anchor), requestID)
    case .seek(let position):
      play!.position = min(position, Self.durationMilliseconds - 20)
      emit(
        .seeked(positionMilliseconds: play!.position, dueNanoseconds: state == .paused ? nil : 0), requestID)
    case .volume(let level):
      play!.request.volume = level
      emit(.status(hello.sessions[0]), requestID)
    default: break
    }
  }

  private var anchor: EngineEvent.Anchor {
    EngineEvent.Anchor(positionMilliseconds: play!.position, dueNanoseconds: 0)
  }

  private mutating func dropNext() {
    if let requestID = next?.requestID { refuse(.superseded, requestID) }
    next = nil
  }

  private mutating func begin(_ request: PlayRequest, _ requestID: String?) {
    play = Play(request: request, position: request.startMilliseconds, requestID: requestID)
    emit(.extracting(url: request.url, tag: request.tag), requestID)
  }

  private mutating func end(_ reason: EngineEvent.EndReason, _ requestID: String? = nil) {
    guard let play else { return }
    // A play that has not been answered is.
    if let requestID = play.requestID { refuse(.superseded, requestID) }
    overAddresses.insert(play.request.url)
    emit(.ended(reason, positionMilliseconds: play.position), requestID)
    self.play = nil
  }

  // MARK: By itself

  /// The source is open, or cannot be.
  mutating func open(failure: ErrorCode?) {
    guard let opened = play, opened.state == .extracting else { return }
    play!.requestID = nil
    if let failure {
      refuse(failure, opened.requestID)
      next.map { next in if let id = next.requestID { refuse(.superseded, id) } }
      next = nil
      return end(.loadFailed)
    }
    var ready = Ready(
      url: opened.request.url, title: nil, durationMilliseconds: Self.durationMilliseconds, codec: "opus",
      passthrough: true, timings: Ready.Timings())
    ready.volume = opened.request.volume
    emit(.ready(ready), opened.requestID)
    if let tag = opened.request.tag { begunTags.insert(tag) }
    play!.state = opened.request.paused ? .paused : .streaming
    emit(opened.request.paused ? .paused(positionMilliseconds: opened.position) : .playing(anchor))
  }

  /// What follows is open, or cannot be.
  mutating func openNext(fails: Bool) {
    guard let prepared = next, let requestID = prepared.requestID else { return }
    guard !fails else {
      overAddresses.insert(prepared.request.url)
      next = nil
      return refuse(.sourceNotFound, requestID)
    }
    next!.requestID = nil
    let ready = Ready(
      url: prepared.request.url, title: nil, durationMilliseconds: Self.durationMilliseconds, codec: "opus",
      passthrough: true, timings: Ready.Timings())
    emit(.prepared(ready), requestID)
  }

  /// Time passes: packets, and at the end what follows.
  mutating func advance(milliseconds: Int) {
    guard let play, play.state == .streaming else { return }
    let step = min(milliseconds, Self.durationMilliseconds - play.position)
    self.play!.position += step
    outbox.append(.packets(step / WireLimits.packetDurationMilliseconds))
    guard self.play!.position >= Self.durationMilliseconds else { return }
    let following = next
    next = nil
    end(.finished)
    if let following { begin(following.request, following.requestID) }
  }

  /// An operator plays something, or stops what plays.
  mutating func operate(url: String?) {
    dropNext()
    guard let url else { return end(.stopped) }
    end(.replaced)
    begin(PlayRequest(url: url), nil)
  }
}
