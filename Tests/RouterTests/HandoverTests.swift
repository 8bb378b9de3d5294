import RouterCore
import Testing
import WireProtocol

extension PlayedSession {
  /// What would have to stand by now.
  fileprivate var standby: Playback.Standby? {
    playback.standby(countedMilliseconds: context.positionMilliseconds)
  }
}

@Suite struct `What is to stand by for a session` {
  @Test func `is what plays, at its place`() throws {
    var session = try PlayedSession("x", "y")
    session.reach(40_000)
    var louder = session.playback.reported
    louder.volume = 1.5
    session.hear(.status(louder))
    let standby = try #require(session.standby)
    var played = session.lastPlay!
    played.volume = 1.5
    #expect(standby == Playback.Standby(request: played, positionMilliseconds: 40_000))
  }

  @Test func `is not paused, where the session is`() throws {
    var session = try PlayedSession("x")
    session.hear(.paused(positionMilliseconds: 7_000))
    let standby = try #require(session.standby)
    #expect(standby.positionMilliseconds == 7_000 && !standby.request.paused)
  }

  @Test func `begins a loop anew where it did`() throws {
    var session = try PlayedSession("x")
    session.play(PlayRequest(url: "media:z", startMilliseconds: 30_000, loop: true))
    session.begin(session.lastPlay!)
    session.reach(50_000)
    let standby = try #require(session.standby)
    #expect(standby.request.startMilliseconds == 30_000 && standby.positionMilliseconds == 50_000)
  }

  @Test func `is nothing while something else is on its way`() throws {
    var session = try PlayedSession("x", "y")
    #expect(session.standby != nil)
    var stopping = session
    stopping.ask { $0.stop(for: RequesterID(number: 1), $1) }
    #expect(stopping.standby == nil)
    session.play(PlayRequest(url: "media:z"))
    #expect(session.standby == nil)
    session.hear(.extracting(url: "media:z", tag: session.lastPlay!.tag))
    #expect(session.standby == nil)
    session.begin(session.lastPlay!)
    #expect(session.standby != nil)
  }

  @Test func `is nothing in the last three seconds, of a part as well`() throws {
    var session = try PlayedSession("x")
    session.reach(97_000)
    #expect(session.standby != nil)
    session.reach(97_020)
    #expect(session.standby == nil)
    session.play(PlayRequest(url: "media:z", endMilliseconds: 20_000))
    session.begin(session.lastPlay!)
    session.reach(18_000)
    #expect(session.standby == nil)
  }

  @Test func `is nothing for what is no queue's, and for an idle session`() throws {
    var session = try PlayedSession()
    #expect(session.standby == nil)
    session.hear(.extracting(url: PlayRequest.scoreURL))
    session.hear(.playing(EngineEvent.Anchor(positionMilliseconds: 0, dueNanoseconds: 0)))
    #expect(session.standby == nil)
  }

  @Test func `is prepared again at the other engine what comes next`() throws {
    var session = try PlayedSession("x", "y")
    session.reach(90_000)
    let first = session.prepares[0]
    session.ask { $0.handedOver(&$1) }
    #expect(session.prepares.map(\.url) == ["media:y", "media:y"] && session.prepares[1].tag != first.tag)
    // What the engine before says of it comes too late.
    session.ask { $0.prepareAnswered(tag: first.tag, isError: true, &$1) }
    session.hear(.ended(.finished, positionMilliseconds: 100_000))
    session.begin(session.prepares[1])
    #expect(session.playback.plan.queue.current?.track.url == "media:y")
  }
}
