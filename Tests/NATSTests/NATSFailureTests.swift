import Foundation
import NATS
import NATSTestSupport
import NIOCore
import NIOPosix
import Testing

/// What becomes of a client whose server goes, freezes or does not want it.
@Suite struct `A NATS client without its server` {
  @Test func `a server that is killed and comes back has its subscribers again`() async throws {
    try await withNATS { nats in
      let server = try nats.server()
      let client = try await nats.connect(server.url)
      let told = Told<String>()
      let states = Told<NATSConnectionState>()
      _ = client.observe { states.add($0) }
      _ = try client.subscribe(to: "a") { told.add(String(buffer: $0.payload)) }
      _ = try client.subscribe(to: "silent") { _ in }
      let lost = Task { try await client.request(bytes(""), to: "silent", timeout: .seconds(30)) }
      await eventually { client.statistics.receivedMessages == 1 }
      server.end()
      await #expect(throws: NATSError.connectionLost) { try await lost.value }
      #expect(NATSError.connectionLost.isOutcomeUnknown)
      #expect(!client.publish(bytes("dropped"), to: "a"))
      #expect(client.statistics.droppedWhileDisconnected == 1)
      await #expect(throws: NATSError.self) { try await client.request(bytes(""), to: "a") }
      // It may subscribe while there is none.
      _ = try client.subscribe(to: "b") { told.add(String(buffer: $0.payload)) }
      try server.start()
      try await client.waitUntilConnected()
      client.publish(bytes("1"), to: "a")
      client.publish(bytes("2"), to: "b")
      #expect(await told.values(2) == ["1", "2"])
      #expect(client.statistics.connections == 2)
      let connected = NATSConnectionState.connected(server: "127.0.0.1:\(server.port)")
      #expect(states.values.count == 3)
      #expect(states.values.first == connected)
      #expect(states.values.last == connected)
    }
  }

  @Test func `the next server in the list is taken at once`() async throws {
    try await withNATS { nats in
      let (one, two) = (try nats.server(), try nats.server())
      let client = try await nats.connect("\(one.url),\(two.url)")
      let told = Told<NATSConnectionState>()
      _ = client.observe { told.add($0) }
      let first = await told.values(1)[0] == .connected(server: "127.0.0.1:\(one.port)") ? one : two
      let second = first === one ? two : one
      first.end()
      #expect(await told.values(3).last == .connected(server: "127.0.0.1:\(second.port)"))
      try await client.roundTrip()
    }
  }

  @Test func `a frozen server is found, and what waits for it is bounded`() async throws {
    try await withNATS { nats in
      let (one, two) = (try nats.server(), try nats.server())
      let client = try await nats.connect(one.url) {
        $0.servers += (try? NATSServerAddress.list(two.url)) ?? []
        $0.limits.pingInterval = .milliseconds(500)
        $0.limits.outboundByteCount = 1 << 20
      }
      // With its time: where hundreds of tests share two threads, this one may run seconds later.
      let states = Told<(state: NATSConnectionState, time: ContinuousClock.Instant)>()
      _ = client.observe { states.add(($0, .now)) }
      let begun = await states.values(1)[0].state
      let first = begun == .connected(server: "127.0.0.1:\(one.port)") ? one : two
      first.signal(SIGSTOP)
      let frozen = ContinuousClock.now
      var largest = 0
      let batch = ByteBuffer(repeating: 1, count: 64 << 10)
      while states.values.count < 2, ContinuousClock.now - frozen < .seconds(10) {
        for _ in 0..<100 { client.publish(batch, to: "a") }
        largest = max(largest, client.outboundByteCount)
        try await Task.sleep(for: .milliseconds(5))
      }
      #expect(largest <= 1 << 20)
      #expect(client.statistics.droppedWhileFull > 0)
      let changes = await states.values(3)
      try #require(changes.count == 3)
      #expect(changes[1].state == .disconnected(reason: "the server has not answered two pings"))
      #expect(changes[2].time - frozen < .seconds(5))
      first.signal(SIGCONT)
      try await client.roundTrip()
      #expect(client.outboundByteCount < 1 << 10)
    }
  }

  @Test func `who reads too slowly is cut off, and comes again`() async throws {
    try await withNATS { nats in
      let server = try nats.server("write_deadline: \"200ms\"\nmax_pending: 2000000")
      let group = MultiThreadedEventLoopGroup(numberOfThreads: 1)
      let slow = try await nats.connect(server.url, eventLoop: group.next())
      let quick = try await nats.connect(server.url)
      let received = Told<Int>()
      _ = try slow.subscribe(to: "flood") { _ in received.add(1) }
      _ = try slow.subscribe(to: "block") { _ in Thread.sleep(forTimeInterval: 1) }
      try await slow.roundTrip()
      quick.publish(bytes(""), to: "block")
      let batch = ByteBuffer(repeating: 1, count: 64 << 10)
      for _ in 0..<600 {
        while !quick.publish(batch, to: "flood") { try await Task.sleep(for: .milliseconds(1)) }
      }
      #expect(await eventually { slow.statistics.connections == 2 })
      #expect(quick.isConnected)
      #expect(quick.statistics.connections == 1)
      let before = received.values.count
      #expect(before < 600)
      quick.publish(batch, to: "flood")
      #expect(await eventually { received.values.count > before })
      slow.close()
    }
  }

  @Test func `the others of a cluster are known, and one that is about to stop is left`() async throws {
    try await withNATS { nats in
      let nodes = try nats.cluster()
      let client = try await nats.connect(nodes[0].url)
      let states = Told<NATSConnectionState>()
      _ = client.observe { states.add($0) }
      // The nodes have found each other when what is said at one is heard at the last.
      let far = try await nats.connect(nodes[2].url)
      let told = Told<String>()
      _ = try far.subscribe(to: "a") { told.add(String(buffer: $0.payload)) }
      let near = try await nats.connect(nodes[1].url)
      await eventually {
        near.publish(bytes("1"), to: "a")
        client.publish(bytes("1"), to: "a")
        return told.values.count > 20
      }
      // Nor does the first know the second before it has heard of it.
      let heard = Told<String>()
      _ = try client.subscribe(to: "b") { heard.add(String(buffer: $0.payload)) }
      await eventually {
        near.publish(bytes("1"), to: "b")
        return heard.values.count > 20
      }
      let losses = Told<Bool>()
      _ = client.observeServerLosses { losses.add(true) }
      // The observer is there once what follows it on the loop is answered.
      try await client.roundTrip()
      nodes[1].end()
      #expect(await losses.values(1) == [true])
      #expect(states.values.count == 1)
      try nodes[1].start()
      // Where the first one's clients go, they must hear of the third.
      let back = try await nats.connect(nodes[1].url)
      let count = told.values.count
      await eventually {
        back.publish(bytes("1"), to: "a")
        return told.values.count > count
      }
      nodes[0].signal(SIGUSR2)
      #expect(await states.values(3).count == 3)
      #expect(states.values[1] == .disconnected(reason: "the server is about to stop"))
      guard case .connected(let second) = states.values[2] else {
        Issue.record("not connected")
        return
      }
      #expect(second != "127.0.0.1:\(nodes[0].port)")
      // And one that is killed.
      nodes.first { second == "127.0.0.1:\($0.port)" }?.end()
      #expect(await states.values(5).count >= 5)
      try await client.waitUntilConnected()
    }
  }

  @Test func `a server that says nonsense, or nothing, is not waited for`() async throws {
    try await withNATS { nats in
      let loop = MultiThreadedEventLoopGroup.singleton.next()
      let greetings = [
        "HTTP/1.1 400 Bad Request\r\n", "", "INFO {}\r\n", #"INFO {"max_payload":1}"# + "\r\n",
      ]
      let reasons = [
        "the server sent an unknown word", "the handshake timed out after 300 ms",
        "the server's INFO cannot be read", "the server does not support message headers",
      ]
      for (greeting, reason) in zip(greetings, reasons) {
        let listener = try await ServerBootstrap(group: loop)
          .childChannelInitializer { channel in
            channel.writeAndFlush(ByteBuffer(string: greeting), promise: nil)
            return channel.eventLoop.makeSucceededVoidFuture()
          }
          .bind(host: "127.0.0.1", port: 0).get()
        let client = try nats.start("nats://127.0.0.1:\(listener.localAddress?.port ?? 0)") {
          $0.limits.handshakeTimeout = .milliseconds(300)
        }
        await #expect(throws: NATSError.notConnected(reason)) {
          try await client.waitUntilConnected(timeout: .milliseconds(700))
        }
        client.close()
        try await listener.close()
      }
    }
  }

  @Test func `a name that does not exist is no end`() async throws {
    try await withNATS { nats in
      let server = try nats.server()
      let client = try nats.start("nats://no-such-host.invalid:4222,\(server.url)")
      try await client.waitUntilConnected()
    }
  }
}
