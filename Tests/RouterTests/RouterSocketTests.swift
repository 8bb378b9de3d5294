import RouterCore
import Testing
import WireProtocol

/// A whole Router over real sockets, against an engine that is bytes on a Unix socket.
@Suite(.timeLimit(.minutes(1))) struct `A running router` {
  /// Runs a router whose engine is connected.
  private func withEngine(
    flags: [String] = [], hello: [UInt8] = FakeEngine.hello(),
    _ body: @Sendable (RunningRouter, FakeEngine) async throws -> Void
  ) async throws {
    try await RunningRouter.run(flags: flags) { router in
      let engine = try await FakeEngine(path: router.enginePath, hello: hello)
      try await router.waitForEngine(connected: true)
      try await body(router, engine)
      try await engine.die()
    }
  }

  @Test func `gives the packets of each session to its own listeners only`() async throws {
    try await withEngine { router, engine in
      let first = try await WebSocketClient.join(port: router.port, session: "one")
      let second = try await WebSocketClient.join(port: router.port, session: "two")
      try await engine.startPlaying("one")
      try await engine.startPlaying("two")
      for number in 0..<20 as Range<UInt8> {
        try await engine.sendPacket([1, number], to: "one")
        try await engine.sendPacket([2, number], to: "two")
        try await engine.sendPacket([3, number], to: "three")
      }
      for number in 0..<20 as Range<UInt8> {
        #expect(try await first.nextAudio() == [1, number])
        #expect(try await second.nextAudio() == [2, number])
      }
      let metrics = try await router.request("GET", "/metrics").body
      #expect(metrics.contains("antiphon_router_stale_packets_total 20\n"))
      #expect(metrics.contains("antiphon_router_packets_received_total 60\n"))
    }
  }

  @Test func `answers the requester with its own request ID and others without`() async throws {
    try await withEngine { router, engine in
      let requester = try await WebSocketClient.join(port: router.port, session: "one")
      let other = try await WebSocketClient.join(port: router.port, session: "one")
      try await requester.send(#"{"type":"pause","request_id":"mine"}"#)
      var commands = engine.commands.makeAsyncIterator()
      let command = try #require(await commands.next())
      #expect(command.action == .session(try SessionID("one"), .pause))
      #expect(command.requestID != "mine")
      try await engine.send(.paused(positionMilliseconds: 7), to: "one", requestID: command.requestID)
      #expect(try await requester.nextText(containing: "paused").contains(#""request_id":"mine""#))
      #expect(try await !other.nextText(containing: "paused").contains("request_id"))
    }
  }

  @Test func `answers REST with the event or error of the engine`() async throws {
    try await withEngine { router, engine in
      async let paused = router.request("POST", "/api/v1/sessions/one/pause")
      var commands = engine.commands.makeAsyncIterator()
      let pause = try #require(await commands.next())
      try await engine.send(.paused(positionMilliseconds: 7), to: "one", requestID: pause.requestID)
      #expect(try await paused.status == 200)
      #expect(try await paused.body.contains(#""position_ms":7"#))
      async let failed = router.request(
        "POST", "/api/v1/sessions/one/play", body: #"{"url":"media:x"}"#)
      let play = try #require(await commands.next())
      try await engine.send(
        .error(ErrorReport(.sourceNotFound, "no x")), to: "one", requestID: play.requestID)
      #expect(try await failed.status == 404)
      #expect(try await failed.body.contains(#""code":"source_not_found""#))
      #expect(try await router.request("POST", "/api/v1/sessions/a%20b/pause").status == 400)
      #expect(
        try await router.request(
          "POST", "/api/v1/sessions/one/play", body: String(repeating: " ", count: 65_537)
        ).status == 413)
    }
  }

  @Test func `plays its queue one after the other`() async throws {
    try await withEngine { router, engine in
      let client = try await WebSocketClient.join(port: router.port, session: "one")
      var commands = engine.commands.makeAsyncIterator()
      try await client.send(#"{"type":"queue_add","url":"media:a","request_id":"q"}"#)
      #expect(try await client.nextText(containing: #""request_id":"q""#).contains("media:a"))
      let first = try #require(await commands.next())
      let firstPlay = try #require(first.playRequest)
      #expect(firstPlay == PlayRequest(url: "media:a", tag: firstPlay.tag))
      try await client.send(#"{"type":"queue_add","url":"media:b"}"#)
      _ = try await client.nextText(containing: "media:b")
      // An end reported before the engine has begun with our play is of what was there before.
      try await engine.send(.ended(.finished, positionMilliseconds: 0), to: "one")
      try await engine.startPlaying("one", url: "media:a", tag: firstPlay.tag)
      try await engine.send(.ended(.finished, positionMilliseconds: 60_000), to: "one")
      let second = try #require(await commands.next(where: { $0.isPlay }))
      #expect(second.playRequest?.url == "media:b")
      #expect(second.playRequest?.tag != firstPlay.tag)
      // Refused before it began: no end will be reported, and the queue has nothing more.
      try await engine.send(
        .error(ErrorReport(.invalidSource, "no")), to: "one", requestID: second.requestID)
      _ = try await client.nextText(containing: #""total":0,"tracks":[]}"#)
      #expect(try await router.request("POST", "/api/v1/sessions/one/skip").status == 404)
    }
  }

  @Test func `says that the engine is away, and goes on where it was when a new one comes`() async throws {
    try await withEngine { router, engine in
      let client = try await WebSocketClient.join(port: router.port, session: "one")
      try await engine.startPlaying("one", url: "media:a", position: 2_000)
      for _ in 0..<50 { try await engine.sendPacket([1], to: "one") }
      for _ in 0..<50 { _ = try await client.nextAudio() }
      try await engine.die()
      _ = try await client.nextText(containing: #""connected":false"#)
      #expect(try await router.request("POST", "/api/v1/sessions/one/pause").status == 503)
      let next = try await FakeEngine(path: router.enginePath, hello: FakeEngine.hello(startedAt: 2))
      var commands = next.commands.makeAsyncIterator()
      let play = try #require(await commands.next())
      // Under a name, so that the Router knows it again.
      let tag = try #require(play.playRequest?.tag)
      let expected = PlayRequest(url: "media:a", startMilliseconds: 3_000, tag: tag)
      #expect(play.action == .session(try SessionID("one"), .play(expected)))
      _ = try await client.nextText(containing: #""connected":true"#)
      try await next.die()
    }
  }

  @Test func `adopts what an engine plays already`() async throws {
    var playing = SessionSnapshot(sessionID: try SessionID("one"), state: .streaming)
    playing.url = "media:a"
    playing.positionMilliseconds = 5_000
    playing.dueNanoseconds = 9
    try await withEngine(hello: FakeEngine.hello(sessions: [playing])) { [playing] router, engine in
      try await engine.sendPacket([1], to: "one")
      try await expectPosition(of: "one", 5_020, router)
      // hello has room for some only; the others follow.
      var further = playing
      further.sessionID = try SessionID("two")
      try await engine.send(.status(further), to: "two")
      try await engine.sendPacket([1], to: "two")
      try await expectPosition(of: "two", 5_020, router)
    }
  }

  @Test func `ends what an engine that has stayed up no longer plays`() async throws {
    try await withEngine { router, engine in
      let client = try await WebSocketClient.join(port: router.port, session: "one")
      try await engine.startPlaying("one")
      _ = try await client.nextText(containing: #""type":"playing""#)
      try await engine.die()
      let same = try await FakeEngine(path: router.enginePath, hello: FakeEngine.hello())
      #expect(try await client.nextText(containing: "ended").contains("finished"))
      try await same.die()
    }
  }

  @Test func `holds no session for lost before the engine has listed all`() async throws {
    try await withEngine { router, engine in
      let client = try await WebSocketClient.join(port: router.port, session: "one")
      try await engine.startPlaying("one")
      _ = try await client.nextText(containing: #""type":"playing""#)
      try await engine.die()
      try await router.waitForEngine(connected: false)
      let others = try (0..<WireLimits.maximumHelloSessions).map { number in
        var snapshot = SessionSnapshot(sessionID: try SessionID("other\(number)"), state: .streaming)
        snapshot.url = "media:a"
        return snapshot
      }
      let same = try await FakeEngine(path: router.enginePath, hello: FakeEngine.hello(sessions: others))
      try await router.waitForEngine(connected: true)
      // Who is paused has been read behind hello.
      try await same.send(.paused(positionMilliseconds: 7), to: "other0")
      try await expectPosition(of: "other0", 7, router)
      let state = try await router.request("GET", "/api/v1/sessions/one").body
      #expect(state.contains(#""state":"streaming""#), "\(state)")
      try await same.send(EngineEvent(.listed).encodedLine())
      #expect(try await client.nextText(containing: "ended").contains("finished"))
      try await same.die()
    }
  }

  @Test func `routes nothing of an engine of another protocol version`() async throws {
    let hello = #"{"type":"hello","protocol":2,"engine_version":"9.0"}"# + "\n"
    try await RunningRouter.run { router in
      let engine = try await FakeEngine(path: router.enginePath, hello: Array(hello.utf8))
      var ready = try await router.request("GET", "/ready")
      while !ready.body.contains("older") {
        try await Task.sleep(for: .milliseconds(10))
        ready = try await router.request("GET", "/ready")
      }
      #expect(ready.status == 503)
      #expect(ready.body.contains("Router is older; deploy both together"))
      try await engine.die()
    }
  }

  @Test func `reconnects after bytes that are not the protocol`() async throws {
    try await withEngine { router, engine in
      let client = try await WebSocketClient.join(port: router.port, session: "one")
      try await engine.send([0x42])
      #expect(try await client.nextText(containing: #""connected":false"#).contains("0x42"))
      _ = try await client.nextText(containing: #""connected":true"#)
    }
  }
}

extension `A running router` {
  /// Waits until the router has counted the session to that position.
  fileprivate func expectPosition(of session: String, _ position: Int, _ router: RunningRouter) async throws {
    while try await !router.request("GET", "/api/v1/sessions/\(session)").body
      .contains("\"position_ms\":\(position)")
    {
      try await Task.sleep(for: .milliseconds(10))
    }
  }
}

extension EngineCommand {
  fileprivate var isPlay: Bool { playRequest != nil }

  fileprivate var playRequest: PlayRequest? {
    if case .session(_, .play(let request)) = action { request } else { nil }
  }
}

extension AsyncStream<EngineCommand>.Iterator {
  /// The next command that is such a one.
  fileprivate mutating func next(where isWanted: (EngineCommand) -> Bool) async -> EngineCommand? {
    while let command = await next() {
      if isWanted(command) { return command }
    }
    return nil
  }
}
