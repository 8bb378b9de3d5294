import NATS
import NATSTestSupport
import NIOCore
import Testing

/// A watch whose consumer JetStream puts on a server that does not have everything.
@Suite struct `A watch on a server that lags behind` {
  /// - Parameter body: given the server, which says once in a while that its consumer lives, and what the watch tells.
  private func watching(
    _ prepare: (inout LaggingServer.State) -> Void,
    _ body: (LaggingServer, Told<KeyValueWatchEvent>) async throws -> Void
  ) async throws {
    let server = try await LaggingServer()
    server.state.withLock { prepare(&$0) }
    defer { server.end() }
    try await withNATS { nats in
      let bucket = try KeyValueBucket("x", client: try await nats.connect(server.url))
      let told = Told<KeyValueWatchEvent>()
      let watch = try bucket.watch { told.add($0) }
      try await body(server, told)
      watch.cancel()
    }
  }

  private func entry(_ revision: UInt64, _ value: String) -> KeyValueWatchEvent {
    .entry(KeyValueEntry(key: "a", revision: revision, value: bytes(value)))
  }

  @Test func `reads from the leader what its consumer does not give, and has another made`() async throws {
    try await watching { state in
      state.values = [7: "old"]
      // The first consumer reads a copy that has nothing.
      state.copies = [0, 8]
    } _: { server, told in
      #expect(await told.values(1).first == .current)
      server.write("new", toCopy: false)
      #expect(await eventually { told.values == [.current, entry(7, "old"), entry(8, "new")] })
      #expect(await eventually { server.state.withLock { $0.beginnings.count } >= 2 })
      server.write("newer", toCopy: true)
      #expect(await eventually { told.values.last == entry(9, "newer") })
    }
  }

  @Test func `is current after what a consumer had sent before it answered`() async throws {
    try await watching { state in
      state.values = [5: "5"]
      state.copies = [5]
      state.sendsBeforeAnswer = true
    } _: { _, told in
      #expect(await told.values(2) == [entry(5, "5"), .current])
    }
  }

  @Test func `tells nothing twice where a copy begins with what it has told`() async throws {
    try await watching { state in
      state.values = [5: "5"]
      state.copies = [5, 4]
    } _: { server, told in
      #expect(await eventually { told.values.count == 2 })
      server.write("6", toCopy: false)
      // The next consumer's copy has not even the one before.
      #expect(await eventually { server.state.withLock { $0.beginnings.prefix(2) } == [0, 7] })
      server.give(5)
      server.give(6)
      server.write("7", toCopy: false)
      #expect(
        await eventually { told.values == [entry(5, "5"), .current, entry(6, "6"), entry(7, "7")] })
    }
  }

  @Test func `needs no consumer while nobody makes one`() async throws {
    try await watching { state in
      state.values = [5: "5"]
      state.creation = .never
    } _: { server, told in
      #expect(await eventually { told.values == [entry(5, "5"), .current] })
      server.write("6", toCopy: false)
      server.write("7", toCopy: false)
      #expect(
        await eventually { told.values == [entry(5, "5"), .current, entry(6, "6"), entry(7, "7")] })
      server.state.withLock {
        $0.copies = [8]
        $0.creation = .atOnce
      }
      #expect(await eventually { server.state.withLock { $0.beginnings } == [8] })
      server.write("8", toCopy: true)
      #expect(await eventually { told.values.last == entry(8, "8") })
    }
  }

  @Test func `knows another bucket of the same name, however far that has come`() async throws {
    try await watching { state in
      state.values = [5: "5"]
      state.copies = [5]
    } _: { server, told in
      #expect(await eventually { told.values.count == 2 })
      // A look has asked which stream it is.
      try await Task.sleep(for: .seconds(2))
      server.state.withLock {
        $0.created = "2026-01-02T00:00:00Z"
        $0.values = [3: "other", 9: "later"]
        $0.copies = [9, 9]
      }
      #expect(await eventually(within: 30) { server.state.withLock { $0.beginnings } == [0, 10, 0] })
      #expect(await eventually { told.values.suffix(2) == [entry(9, "later"), entry(9, "later")] })
    }
  }

  @Test func `keeps a consumer that has nothing to give`() async throws {
    try await watching { state in
      state.values = [5: "5"]
      state.copies = [5]
    } _: { server, told in
      try await Task.sleep(for: .seconds(4))
      server.write("6", toCopy: true)
      #expect(await eventually { told.values == [entry(5, "5"), .current, entry(6, "6")] })
      #expect(server.state.withLock { $0.beginnings } == [0])
    }
  }

  @Test func `keeps a consumer that gives first what the leader is read for`() async throws {
    try await watching { state in
      state.values = [5: "5"]
      state.copies = [5]
      state.creation = .atRead
    } _: { server, told in
      #expect(await eventually { told.values == [entry(5, "5"), .current] })
      // A consumer that misses messages would be replaced before the leader is read a third time.
      #expect(await eventually(within: 30) { server.state.withLock { $0.readCount } == 3 })
      #expect(server.state.withLock { $0.beginnings } == [0])
    }
  }
}
