import RouterCore
import Testing
import WireProtocol

/// One session's playback with an engine that does what the test says. What is written is on disk at once.
struct PlayedSession {
  // A valid name.
  var playback = Playback(id: try! SessionID("s"))
  var context = Playback.Context(
    positionMilliseconds: 0, nowMilliseconds: 0, isEngineConnected: true, crashes: CrashTracker(),
    tags: PlayTags(prefix: "t"))
  /// What the engine was asked for, in order; the number is the request's ID.
  private(set) var sent: [EngineCommand.SessionAction] = []
  /// What cannot be written: why, and what it is undone to.
  private var failure: (report: ErrorReport, undo: Playback.Undo)?

  /// A queue of these tracks, the first of which plays.
  init(_ names: String...) throws {
    try change(.add(names.map { QueuedTrack(url: "media:" + $0) }, at: .end))
    if !names.isEmpty { begin(lastPlay!) }
  }

  private mutating func perform() {
    while case let actions = playback.takeActions(), !actions.isEmpty {
      for action in actions {
        switch action {
        case .send(let command, _):
          sent.append(command)
          playback.sent(command, requestID: "\(sent.count)")
        case .write(let write, let requester):
          if let failure { playback.undo(to: failure.undo) }
          playback.written(write, for: requester, failure: failure?.report, &context)
        case .report(let event):
          playback.apply(event)
          playback.follow(event, &context)
        default: break
        }
      }
    }
  }

  mutating func change(_ command: QueueCommand) throws {
    try playback.change(command, for: nil, &context)
    perform()
  }

  /// A client's own play, or what is to follow.
  mutating func play(_ request: PlayRequest) {
    playback.play(QueuedTrack(url: request.url), request, for: nil, &context)
    perform()
  }

  mutating func ask(_ change: (inout Playback, inout Playback.Context) -> Void) {
    change(&playback, &context)
    perform()
  }

  /// The same for what then cannot be written.
  mutating func failToWrite(_ change: (inout Playback, inout Playback.Context) -> Void) {
    failure = (ErrorReport(.storageFailed, "the disk is full"), Playback.Undo(playback))
    ask(change)
    failure = nil
  }

  mutating func hear(_ body: EngineEvent.Body, requestID: String? = nil) {
    let event = EngineEvent(body, sessionID: playback.id, requestID: requestID)
    playback.apply(event)
    playback.follow(event, &context)
    perform()
  }

  /// The engine opens and plays what it was asked for: 100 s.
  mutating func begin(_ request: PlayRequest) {
    context.positionMilliseconds = request.startMilliseconds
    hear(.extracting(url: request.url, tag: request.tag))
    var ready = Ready(
      url: request.url, title: nil, durationMilliseconds: 100_000, codec: "flac", passthrough: false,
      timings: Ready.Timings())
    ready.volume = request.volume
    ready.loop = request.loop
    hear(.ready(ready))
    hear(.playing(anchor))
  }

  /// The track plays on to a place.
  mutating func reach(_ milliseconds: Int) {
    context.positionMilliseconds = milliseconds
    hear(.playing(anchor))
  }

  private var anchor: EngineEvent.Anchor {
    EngineEvent.Anchor(positionMilliseconds: context.positionMilliseconds, dueNanoseconds: 0)
  }

  // MARK: What was asked for

  var lastPlay: PlayRequest? {
    sent.lazy.reversed().compactMap { if case .play(let request) = $0 { request } else { nil } }.first
  }

  var prepares: [PlayRequest] {
    sent.compactMap { if case .prepare(let request) = $0 { request } else { nil } }
  }

  var levels: [Double] { sent.compactMap { if case .volume(let level) = $0 { level } else { nil } } }
}

@Suite struct `A session's playback` {
  private let refused = ErrorReport(.sourceNotFound, "it is gone")

  @Test func `prepares what follows when 20 s are left`() throws {
    var session = try PlayedSession("x", "y")
    session.reach(79_000)
    #expect(session.prepares.isEmpty)
    session.reach(81_000)
    session.reach(82_000)
    #expect(session.prepares.map(\.url) == ["media:y"])
  }

  @Test func `takes a part's end for the track's`() throws {
    var session = try PlayedSession("x", "y")
    session.play(PlayRequest(url: "media:z", endMilliseconds: 30_000))
    session.begin(session.lastPlay!)
    session.reach(15_000)
    #expect(session.prepares.map(\.url) == ["media:y"])
  }

  @Test func `prepares anew after a client's own play`() throws {
    var session = try PlayedSession("x", "y")
    session.reach(90_000)
    session.play(PlayRequest(url: "media:z", startMilliseconds: 90_000))
    session.begin(session.lastPlay!)
    #expect(session.prepares.map(\.url) == ["media:y", "media:y"])
  }

  @Test func `takes back what was prepared, and plays on where the engine has begun with it already`() throws
  {
    var session = try PlayedSession("x", "y", "z")
    session.reach(90_000)
    let withdrawn = session.prepares[0]
    try session.change(.remove(id: session.playback.plan.queue.following!.id))
    #expect(session.sent.contains(.unprepare))
    session.hear(.ended(.finished, positionMilliseconds: 100_000))
    session.hear(.extracting(url: withdrawn.url, tag: withdrawn.tag))
    #expect(session.lastPlay?.url == "media:z")
    #expect(session.playback.plan.queue.current?.track.url == "media:z")
  }

  @Test func `plays what could not be prepared`() throws {
    var session = try PlayedSession("x", "y")
    session.reach(90_000)
    session.hear(.error(refused), requestID: "\(session.sent.count)")
    session.hear(.ended(.finished, positionMilliseconds: 100_000))
    #expect(session.lastPlay?.url == "media:y")
  }

  @Test func `has nothing prepared once the queue plays something else`() throws {
    var session = try PlayedSession("x", "y", "z")
    session.reach(90_000)
    try session.change(.skip)
    #expect(session.playback.plan.prepared == nil)
  }

  @Test func `moves on where a client's own play is refused after the track has ended`() throws {
    var session = try PlayedSession("x", "y")
    session.play(PlayRequest(url: "media:z"))
    session.hear(.ended(.finished, positionMilliseconds: 100_000))
    session.hear(.error(refused), requestID: "\(session.sent.count)")
    #expect(session.lastPlay?.url == "media:y")
  }

  @Test func `leaves another router's track alone where a client's own play is refused`() throws {
    var session = try PlayedSession("x", "y")
    session.play(PlayRequest(url: "media:z"))
    let request = "\(session.sent.count)"
    session.hear(.ended(.replaced, positionMilliseconds: 10_000))
    session.hear(.extracting(url: "media:other", tag: nil))
    session.hear(.error(refused), requestID: request)
    #expect(session.lastPlay?.url == "media:z")
    #expect(session.playback.plan.queue.current?.track.url == "media:other")
  }

  @Test func `keeps a client's own play whose engine is lost`() throws {
    var session = try PlayedSession("x", "y")
    session.play(PlayRequest(url: "media:z"))
    session.ask { playback, context in playback.loseEngine(context) }
    #expect(session.playback.plan.queue.current?.track.url == "media:z")
    session.ask { playback, context in playback.engineDoesNotPlay(isSameEngine: false, &context) }
    #expect(session.lastPlay?.url == "media:z")
  }

  @Test func `is as it was where a stop could not be written`() throws {
    var session = try PlayedSession("x")
    session.ask { playback, context in playback.loseEngine(context) }
    session.ask { playback, context in playback.engineDoesNotPlay(isSameEngine: false, &context) }
    let overloaded = ErrorReport(.workersExhausted, "not now")
    session.hear(.error(overloaded), requestID: "\(session.sent.count)")
    session.failToWrite { playback, context in playback.stop(for: RequesterID(number: 1), context) }
    #expect(session.playback.state == .streaming && session.playback.isLost)
  }

  // MARK: Levels

  @Test func `keeps the level that is asked for while a track is opened, and asks the engine once`() throws {
    var session = try PlayedSession()
    session.play(PlayRequest(url: "media:x"))
    session.hear(.extracting(url: "media:x", tag: session.lastPlay?.tag))
    session.ask { playback, context in playback.setVolume(0.5, for: nil, context) }
    var ready = Ready(
      url: "media:x", title: nil, durationMilliseconds: nil, codec: "flac", passthrough: false,
      timings: Ready.Timings())
    ready.volume = 1
    session.hear(.ready(ready))
    #expect(session.playback.plan.volume == 0.5)
    for _ in 0..<2 { session.ask { playback, _ in playback.sendWantedVolume() } }
    #expect(session.levels == [0.5])
  }

  // MARK: What is kept

  @Test func `keeps the place in a round of a loop`() throws {
    var session = try PlayedSession()
    session.play(PlayRequest(url: "media:x", loop: true))
    session.begin(session.lastPlay!)
    let record = session.playback.record(countedMilliseconds: 230_000)
    #expect(record.positionMilliseconds == 30_000 && record.playing?.loop == true)
  }

  @Test func `keeps a part's end`() throws {
    var session = try PlayedSession()
    session.play(PlayRequest(url: "media:x", endMilliseconds: 90_000))
    session.begin(session.lastPlay!)
    let record = session.playback.record(countedMilliseconds: 30_000)
    #expect(record.positionMilliseconds == 30_000 && record.playing?.endMilliseconds == 90_000)
  }
}
