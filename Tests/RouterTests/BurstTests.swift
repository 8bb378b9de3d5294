import NIOCore
import RouterCore
import Testing
import WireProtocol

@Suite struct `A burst` {
  private var burst: SoundBurst {
    var burst = SoundBurst()
    var counter = PacketCounter()
    counter.anchor(positionMilliseconds: 40, dueNanoseconds: 0x0102_0304_0506_0708)
    burst.append(counter.take(), [0xAA, 0xBB][...])
    burst.append(counter.take(), [0xCC][...])
    return burst
  }

  @Test func `is a message a packet for opus.v1`() {
    let message = WebSocketFrames.burst(burst, subprotocol: .opus)
    #expect(Array(message.frames.readableBytesView) == [0x82, 2, 0xAA, 0xBB, 0x82, 1, 0xCC])
    #expect(message.messageCount == 2)
  }

  @Test func `is one message with all records for timed.v1`() {
    let message = WebSocketFrames.burst(burst, subprotocol: .timed)
    let first: [UInt8] =
      [0, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8, 0, 0, 0, 40, 0, 2, 0xAA, 0xBB]
    // 20 ms are 0x1312D00 ns.
    let second: [UInt8] =
      [0, 0, 0, 1, 1, 2, 3, 4, 6, 0x37, 0x34, 0x08, 0, 0, 0, 60, 0, 1, 0xCC]
    #expect(
      Array(message.frames.readableBytesView) == [0x82, UInt8(first.count + second.count)] + first + second)
    #expect(message.messageCount == 1)
  }

  @Test func `gives the audio as it came`() {
    var audio: [[UInt8]] = []
    burst.forEachAudio { audio.append(Array($0.readableBytesView)) }
    #expect(audio == [[0xAA, 0xBB], [0xCC]])
    #expect(burst.audioByteCount == 3)
  }

  @Test(arguments: [
    (125, [0x82, 125] as [UInt8]), (126, [0x82, 126, 0, 126]), (1_275, [0x82, 126, 0x04, 0xFB]),
  ])
  func `has the shortest header that fits`(_ byteCount: Int, _ header: [UInt8]) {
    var burst = SoundBurst()
    var counter = PacketCounter()
    burst.append(counter.take(), [UInt8](repeating: 9, count: byteCount)[...])
    let message = WebSocketFrames.burst(burst, subprotocol: .opus)
    #expect(Array(message.frames.readableBytesView.prefix(header.count)) == header)
    #expect(message.frames.readableBytes == header.count + byteCount)
  }
}

/// A whole Router and an engine that gives what was just played.
@Suite(.timeLimit(.minutes(1))) struct `One who joins late` {
  private func withEngine(
    _ body: @Sendable (RunningRouter, FakeEngine) async throws -> Void
  ) async throws {
    try await RunningRouter.run { router in
      let hello = FakeEngine.hello(capabilities: [Hello.burst])
      let engine = try await FakeEngine(path: router.enginePath, hello: hello)
      try await router.waitForEngine(connected: true)
      try await body(router, engine)
      try await engine.die()
    }
  }

  /// Plays so many packets from a second on: number 0 is due at 1,000 ns.
  private func play(_ packets: Range<UInt8>, on engine: FakeEngine, for listener: WebSocketClient)
    async throws
  {
    try await engine.startPlaying("one", position: 1_000)
    for number in packets {
      try await engine.sendPacket([number], to: "one")
      #expect(try await listener.nextAudio() == [number])
    }
  }

  private func sendBurst(
    _ packets: ClosedRange<UInt8>, on engine: FakeEngine, for command: EngineCommand
  ) async throws {
    let first = UInt64(packets.lowerBound)
    try await engine.sendBurst(
      packets.map { [$0] }, of: "one", position: 1_000 + Int(first) * 20, due: 1_000 + first * 20_000_000,
      requestID: command.requestID)
  }

  @Test func `hears what was just played, and then what comes, each packet once`() async throws {
    try await withEngine { router, engine in
      let early = try await WebSocketClient.join(port: router.port, session: "one")
      try await play(0..<60, on: engine, for: early)
      let bot = try await WebSocketClient.join(port: router.port, session: "one")
      var commands = engine.commands.makeAsyncIterator()
      let command = try #require(await commands.next())
      #expect(command.action == .burst(try SessionID("one"), milliseconds: 500))
      // On their way before the answer: they are in it.
      try await engine.sendPacket([60], to: "one")
      try await sendBurst(36...60, on: engine, for: command)
      try await engine.sendPacket([61], to: "one")
      for number in 36...61 as ClosedRange<UInt8> { #expect(try await bot.nextAudio() == [number]) }
      for number in 60...61 as ClosedRange<UInt8> { #expect(try await early.nextAudio() == [number]) }
    }
  }

  @Test func `is told the places of what was just played, which those that come follow`() async throws {
    try await withEngine { router, engine in
      let early = try await WebSocketClient.join(port: router.port, session: "one")
      try await play(0..<60, on: engine, for: early)
      try await engine.send(.dropped(count: 2), to: "one")
      let page = try await WebSocketClient.join(
        port: router.port, session: "one", subprotocol: "antiphon.timed.v1", bufferMilliseconds: 40)
      var commands = engine.commands.makeAsyncIterator()
      try await sendBurst(60...61, on: engine, for: try #require(await commands.next()))
      try await engine.sendPacket([62], to: "one")
      // Sequence, due, position, length, audio.
      let expected: [UInt8] =
        [0, 0, 0, 60, 0, 0, 0, 0, 0x47, 0x86, 0x8F, 0xE8, 0, 0, 8, 0x98, 0, 1, 60]
        + [0, 0, 0, 61, 0, 0, 0, 0, 0x48, 0xB7, 0xBC, 0xE8, 0, 0, 8, 0xAC, 0, 1, 61]
      #expect(try await page.nextAudio() == expected)
      let next: [UInt8] = [0, 0, 0, 62, 0, 0, 0, 0, 0x49, 0xE8, 0xE9, 0xE8, 0, 0, 8, 0xC0, 0, 1, 62]
      #expect(try await page.nextAudio() == next)
    }
  }

  @Test func `is given with others what was asked for once`() async throws {
    try await withEngine { router, engine in
      let early = try await WebSocketClient.join(port: router.port, session: "one")
      try await play(0..<3, on: engine, for: early)
      let first = try await WebSocketClient.join(port: router.port, session: "one")
      let second = try await WebSocketClient.join(port: router.port, session: "one")
      try await second.send(#"{"type":"pause"}"#)
      var commands = engine.commands.makeAsyncIterator()
      let command = try #require(await commands.next())
      let next = try #require(await commands.next())
      #expect(next.action == .session(try SessionID("one"), .pause))
      try await sendBurst(0...2, on: engine, for: command)
      for client in [first, second] {
        for number in 0...2 as ClosedRange<UInt8> { #expect(try await client.nextAudio() == [number]) }
      }
    }
  }

  @Test func `hears what comes where the engine has no room for more`() async throws {
    try await withEngine { router, engine in
      let early = try await WebSocketClient.join(port: router.port, session: "one")
      try await play(0..<3, on: engine, for: early)
      let late = try await WebSocketClient.join(port: router.port, session: "one")
      var commands = engine.commands.makeAsyncIterator()
      let command = try #require(await commands.next())
      let report = ErrorReport(.overloaded, "the answer does not fit", stage: .send)
      try await engine.send(.error(report), to: "one", requestID: command.requestID)
      try await engine.sendPacket([3], to: "one")
      #expect(try await late.nextAudio() == [3])
    }
  }

  @Test func `and has gone when the answer comes harms nobody`() async throws {
    try await withEngine { router, engine in
      let early = try await WebSocketClient.join(port: router.port, session: "one")
      try await play(0..<3, on: engine, for: early)
      let late = try await WebSocketClient.join(port: router.port, session: "one")
      var commands = engine.commands.makeAsyncIterator()
      let command = try #require(await commands.next())
      try await late.disconnect()
      try await router.waitForMetric("antiphon_router_listeners 1")
      try await sendBurst(0...2, on: engine, for: command)
      try await engine.sendPacket([3], to: "one")
      #expect(try await early.nextAudio() == [3])
    }
  }

  @Test func `cannot ask for it by a command`() async throws {
    try await withEngine { router, _ in
      let client = try await WebSocketClient.join(port: router.port, session: "one")
      try await client.send(#"{"type":"burst","milliseconds":100}"#)
      #expect(try await client.nextText(containing: "error").contains("invalid_command"))
    }
  }

  @Test(arguments: [false, true])
  func `hears nothing of a stream in which something comes between a burst's packets`(_ isEvent: Bool)
    async throws
  {
    try await withEngine { router, engine in
      let id = try SessionID("one")
      let anchor = EngineEvent.Anchor(positionMilliseconds: 0, dueNanoseconds: 0)
      try await engine.send(.burst(anchor, count: 2), to: "one", requestID: "nobody's")
      try await engine.send(AudioPacketHeader.message(sessionID: id, audio: [1]))
      if isEvent {
        try await engine.send(.paused(positionMilliseconds: 0), to: "one")
      } else {
        try await engine.sendPacket([2], to: "two")
      }
      try await router.waitForMetric("protocol_errors_total 1")
    }
  }
}

@Suite(.timeLimit(.minutes(1))) struct `A listener that takes three packets a message` {
  /// The last byte of each record: packets are a byte long.
  private func packets(_ message: [UInt8]) -> [UInt8] {
    stride(from: 18, to: message.count, by: 19).map { message[$0] }
  }

  @Test
  func `gets each once, with listeners that join between, and none after the event that it comes before`()
    async throws
  {
    try await RunningRouter.run { router in
      let hello = FakeEngine.hello(capabilities: [Hello.burst])
      let engine = try await FakeEngine(path: router.enginePath, hello: hello)
      try await router.waitForEngine(connected: true)
      func join() async throws -> WebSocketClient {
        try await WebSocketClient.join(
          port: router.port, session: "one", subprotocol: "antiphon.timed.v1", packetsPerMessage: 3)
      }
      let first = try await join()
      try await engine.startPlaying("one")
      for number in 0..<4 as Range<UInt8> { try await engine.sendPacket([number], to: "one") }
      #expect(packets(try await first.nextAudio()) == [0, 1, 2])
      let second = try await join()
      var commands = engine.commands.makeAsyncIterator()
      try await engine.sendBurst(
        [[2], [3]], of: "one", position: 40, due: 40_001_000,
        requestID: try #require(await commands.next()).requestID)
      #expect(packets(try await second.nextAudio()) == [2, 3])
      #expect(packets(try await first.nextAudio()) == [3])
      for number in 4..<9 as Range<UInt8> { try await engine.sendPacket([number], to: "one") }
      try await engine.send(.paused(positionMilliseconds: 180), to: "one")
      for client in [first, second] {
        #expect(packets(try await client.nextAudio()) == [4, 5, 6])
        #expect(packets(try await client.nextAudio()) == [7, 8])
        guard case .text(let text) = try await client.next() else {
          throw WebSocketClient.Unexpected(description: "no text")
        }
        #expect(text.contains("paused"))
      }
      try await engine.die()
    }
  }
}
