import RouterCore
import Testing

/// What a WebSocket may and may not do, over real sockets.
@Suite(.timeLimit(.minutes(1))) struct `A WebSocket` {
  @Test func `of a foreign page is refused with the error object`() async throws {
    try await RunningRouter.run { router in
      let client = try await WebSocketClient(
        port: router.port, target: "/ws?session=one", headers: ["Origin: http://evil.example"])
      guard case .http(let status, let answer) = try await client.next() else {
        Issue.record("no answer")
        return
      }
      #expect(status == 403)
      #expect(answer.contains(#""code":"forbidden""#))
      let refused = try await router.request(
        "DELETE", "/api/v1/sessions/one/queue", headers: ["Origin": "http://evil.example"])
      #expect(refused.status == 403)
    }
  }

  @Test func `of our own page is welcome`() async throws {
    try await RunningRouter.run { router in
      let client = try await WebSocketClient(
        port: router.port, target: "/ws?session=one", headers: ["Origin: http://127.0.0.1:\(router.port)"])
      guard case .http(101, _) = try await client.next() else {
        Issue.record("no upgrade")
        return
      }
    }
  }

  @Test(arguments: [
    ("/ws?session=a/b", "", 400), ("/ws", "", 400), ("/other?session=a", "", 404),
    ("/ws?session=a", "Sec-WebSocket-Protocol: chat", 400),
  ])
  func `is refused with a status that says why`(_ target: String, _ header: String, _ status: Int)
    async throws
  {
    try await RunningRouter.run { router in
      let client = try await WebSocketClient(
        port: router.port, target: target, headers: header.isEmpty ? [] : [header])
      guard case .http(let answered, let answer) = try await client.next() else {
        Issue.record("no answer")
        return
      }
      #expect(answered == status)
      #expect(answer.contains(#""message":"#))
    }
  }

  @Test func `is not meant by other upgrades, which are answered as requests`() async throws {
    try await RunningRouter.run { router in
      let answer = try await router.request(
        "POST", "/api/v1/sessions/one/pause", body: "{}",
        headers: ["Upgrade": "h2c", "Connection": "Upgrade, HTTP2-Settings"])
      #expect(answer.status == 503)
      #expect(answer.body.contains("engine_unavailable"))
    }
  }

  @Test func `is closed for a text that is too long, in one piece or many`() async throws {
    try await RunningRouter.run { router in
      let one = try await WebSocketClient.join(port: router.port, session: "one")
      try await one.send(String(repeating: "a", count: 65_537))
      #expect(try await one.nextClose().code == 1009)
      let many = try await WebSocketClient.join(port: router.port, session: "one")
      let half = [UInt8](repeating: UInt8(ascii: "a"), count: 40_000)
      try await many.sendFrame(opcode: 1, half, isFinal: false)
      try await many.sendFrame(opcode: 0, half)
      #expect(try await many.nextClose().code == 1009)
    }
  }

  @Test func `is closed for what is not text`() async throws {
    try await RunningRouter.run { router in
      let binary = try await WebSocketClient.join(port: router.port, session: "one")
      try await binary.sendFrame(opcode: 2, [1])
      #expect(try await binary.nextClose().code == 1003)
      let broken = try await WebSocketClient.join(port: router.port, session: "one")
      try await broken.sendFrame(opcode: 1, [0xFF, 0xFE])
      #expect(try await broken.nextClose().code == 1007)
    }
  }

  @Test func `is read across fragments, answered, and pinged back`() async throws {
    try await RunningRouter.run { router in
      let client = try await WebSocketClient.join(port: router.port, session: "one")
      try await client.sendFrame(opcode: 1, Array(#"{"type":"ping","#.utf8), isFinal: false)
      try await client.sendFrame(opcode: 9, [7, 8])
      try await client.sendFrame(opcode: 0, Array(#""t":12.5}"#.utf8))
      #expect(try await client.next() == .pong([7, 8]))
      let pong = try await client.nextText(containing: "pong")
      #expect(pong.contains(#""t":12.5"#) && pong.contains(#""now_ns":"#))
      try await client.send("not JSON")
      #expect(try await client.nextText(containing: "error").contains("invalid_json"))
      try await client.send(#"{"type":"pause","request_id":"p"}"#)
      let refused = try await client.nextText(containing: "engine_unavailable")
      #expect(refused.contains(#""request_id":"p""#))
    }
  }

  @Test func `is answered the last of the pings that come together`() async throws {
    try await RunningRouter.run { router in
      let client = try await WebSocketClient.join(port: router.port, session: "one")
      try await client.sendPings(0..<150)
      var pongs: [[UInt8]] = []
      while pongs.last != [149] {
        if case .pong(let payload) = try await client.next() { pongs.append(payload) }
      }
      #expect(pongs.count < 10)
    }
  }

  @Test func `is closed for a message in too many pieces`() async throws {
    try await RunningRouter.run { router in
      let client = try await WebSocketClient.join(port: router.port, session: "one")
      for number in 0...RouterLimits.maximumFragmentCount {
        try await client.sendFrame(opcode: number == 0 ? 1 : 0, [], isFinal: false)
      }
      #expect(try await client.nextClose().code == 1002)
      let metrics = try await router.request("GET", "/metrics").body
      #expect(metrics.contains("client_waiting_bytes "))
    }
  }

  @Test func `that floods is slowed and loses nothing, and another is answered at once`() async throws {
    try await RunningRouter.run { router in
      let flooder = try await WebSocketClient.join(port: router.port, session: "one")
      let other = try await WebSocketClient.join(port: router.port, session: "two")
      let count = RouterLimits.connectionCommandBurst + RouterLimits.heldCommandCount + 20
      try await flooder.send(together: (0..<count).map { #"{"type":"ping","t":\#($0)}"# })
      try await other.send(#"{"type":"ping","t":-1}"#)
      #expect(try await other.nextText(containing: "pong").contains(#""t":-1,"#))
      for number in 0..<count {
        #expect(try await flooder.nextText(containing: "pong").contains(#""t":\#(number),"#))
      }
      let metrics = try await router.request("GET", "/metrics").body
      #expect(!metrics.contains(#"client_limits_reached_total{limit="commands"} 0"#))
      #expect(
        metrics.contains("client_commands_in_flight 0\n") && metrics.contains("client_waiting_bytes 0\n"))
    }
  }

  @Test func `that says goodbye is answered and forgotten`() async throws {
    try await RunningRouter.run { router in
      let client = try await WebSocketClient.join(port: router.port, session: "one")
      #expect(try await router.request("GET", "/health").body.contains(#""listeners":1"#))
      try await client.sendFrame(opcode: 8, [0x03, 0xE8])
      #expect(try await client.nextClose().code == 1000)
      #expect(try await client.next() == .ended)
      #expect(try await router.request("GET", "/api/v1/sessions").body == #"{"sessions":[]}"#)
    }
  }

  @Test func `is told that the Router stops`() async throws {
    let (clients, continuation) = AsyncStream.makeStream(of: WebSocketClient.self)
    try await RunningRouter.run { router in
      continuation.yield(try await WebSocketClient.join(port: router.port, session: "one"))
    }
    var iterator = clients.makeAsyncIterator()
    let client = try #require(await iterator.next())
    #expect(try await client.nextClose().code == 1001)
  }

  @Test func `that does not read loses its own audio and then its place, and another nothing`() async throws {
    try await RunningRouter.run { router in
      let engine = try await FakeEngine(path: router.enginePath, hello: FakeEngine.hello())
      try await router.waitForEngine(connected: true)
      let slow = try await WebSocketClient.join(port: router.port, session: "one")
      let quick = try await WebSocketClient.join(port: router.port, session: "one")
      try await slow.setReading(false)
      try await engine.startPlaying("one")
      // 3 MB a second: the kernel's buffers are full in the first, and losing begins.
      let audio = [UInt8](repeating: 5, count: 1_200)
      let begun = ContinuousClock.now
      while try await !router.request("GET", "/metrics").body.contains("slow_listeners_closed_total 1\n") {
        for _ in 0..<25 { try await engine.sendPacket(audio, to: "one") }
        for _ in 0..<25 { #expect(try await quick.nextAudio() == audio) }
        try await Task.sleep(for: .milliseconds(10))
      }
      // All of it heard by the quick one.
      #expect(ContinuousClock.now - begun > .seconds(5))
      try await slow.setReading(true)
      #expect(try await slow.nextClose().code == 1013)
      try await engine.die()
    }
  }

  /// While nothing waits, audio is written past NIO, and texts never are: both ways, and what waits, in one order.
  @Test func `that reads by fits and starts gets everything in order`() async throws {
    try await RunningRouter.run { router in
      let engine = try await FakeEngine(path: router.enginePath, hello: FakeEngine.hello())
      try await router.waitForEngine(connected: true)
      let client = try await WebSocketClient.join(port: router.port, session: "one")
      try await engine.startPlaying("one")
      _ = try await client.nextText(containing: #""type":"playing""#)
      var sent: UInt32 = 0
      var heard: UInt32 = 0
      func send(_ count: Int) async throws {
        for _ in 0..<count {
          // Of different lengths, so that the socket is full at every place of a frame.
          let length = 2_000 + Int(sent) * 37 % 5_000
          let number = withUnsafeBytes(of: sent.bigEndian) { Array($0) }
          try await engine.sendPacket(
            number + [UInt8](repeating: UInt8(truncatingIfNeeded: sent), count: length), to: "one")
          try await engine.send(.stuck(positionMilliseconds: Int(sent), waitedMilliseconds: 0), to: "one")
          sent += 1
        }
      }
      for _ in 0..<5 {
        try await send(3)
        try await client.setReading(false)
        while try await router.request("GET", "/metrics").body.contains("listener_queue_bytes 0\n") {
          try await send(5)
        }
        // Less than 2 s: nothing is lost.
        try await send(20)
        try await client.setReading(true)
        while heard < sent {
          let audio = try await client.nextAudio()
          let number = audio.prefix(4).reduce(UInt32(0)) { $0 << 8 | UInt32($1) }
          #expect(number == heard)
          #expect(audio.count == 2_004 + Int(heard) * 37 % 5_000)
          #expect(Set(audio.dropFirst(4)) == [UInt8(truncatingIfNeeded: heard)])
          // The session's queue, once it is stored, may come between.
          let text = try await client.nextText(containing: #""type":"stuck""#)
          #expect(
            text.contains(#""position_ms":\#(heard),"#) || text.contains(#""position_ms":\#(heard)}"#),
            "\(text)")
          heard += 1
        }
      }
      try await engine.die()
    }
  }
}
