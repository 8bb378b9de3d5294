import Logging
import NATSTestSupport
import NIOCore
import NIOPosix
import RouterCore
import Testing
import WireProtocol

/// One session, whose state goes to the disk and to the archive.
@Suite struct `The state of one of several Routers` {
  /// Confined to its loop.
  private final class Plane {
    let writer: StateWriter
    let session: RoutedSession
    var overtaken: [SessionID] = []

    init(_ writer: StateWriter, _ session: RoutedSession) {
      self.writer = writer
      self.session = session
    }
  }

  private struct Bed {
    let archive: ArchiveBed
    let loop: any EventLoop
    let plane: NIOLoopBound<Plane>

    func callAsFunction<Value: Sendable>(
      _ body: @escaping @Sendable (Plane) throws -> Value
    ) async throws -> Value {
      try await loop.submit { try body(plane.value) }.get()
    }

    /// A client adds a track.
    ///
    /// - Returns: why it was refused.
    func add(_ name: String) async throws -> ErrorReport? {
      let client = ClientID(subject: "a", address: nil)
      let promise = loop.makePromise(of: ErrorReport?.self)
      try await self { plane in
        try plane.writer.prepare(plane.session, for: client)
        _ = try plane.session.playback.plan.queue.add(
          [QueuedTrack(url: "media:\(name)")], isSessionIdle: false)
        plane.writer.save(plane.session, for: client) { promise.succeed($0) }
        // What waits while nothing can be written is tried again at each checkpoint.
        if plane.writer.problem != nil { plane.writer.savePositions(of: []) }
      }
      return try await promise.futureResult.get()
    }

    /// The Router changes something by itself, and it is in effect.
    func setLoop(_ mode: LoopMode) async throws {
      let promise = loop.makePromise(of: Void.self)
      try await self { plane in
        plane.session.playback.plan.queue.setLoop(mode)
        plane.writer.save(plane.session) { promise.succeed() }
        if plane.writer.problem != nil { plane.writer.savePositions(of: []) }
      }
      try await promise.futureResult.get()
    }

    var queued: [String] {
      get async throws {
        try await self { $0.session.playback.plan.queue.waiting.map(\.entry.track.url) }
      }
    }

    /// What another Router would read.
    var archived: ArchivedContent? {
      get async throws { try await archive.archive().read(try SessionID("a")) }
    }
  }

  private func with(_ body: (Bed, StateStore) async throws -> Void) async throws {
    try await ArchiveBed.with { bed in
      try await ArchiveBed.withStore { store in
        let loop = MultiThreadedEventLoopGroup.singleton.next()
        let clock = CumulativeUptimeClock(base: 100_000)
        let archive = SessionArchive(bed.shaky, clock: clock)
        let plane = try await loop.submit {
          let writer = StateWriter(
            store: store, archive: archive, clock: clock, eventLoop: loop,
            logger: Logger(label: "tests") { _ in SwiftLogNoOpLogHandler() })
          let plane = Plane(writer, RoutedSession(id: try SessionID("a")))
          writer.onOvertaken = { [unowned plane] in plane.overtaken.append($0) }
          return NIOLoopBound(plane, eventLoop: loop)
        }.get()
        try await body(Bed(archive: bed, loop: loop, plane: plane), store)
      }
    }
  }

  @Test func `is on disk and in the archive when a command is answered`() async throws {
    try await with { bed, store in
      let refused = try await bed.add("1")
      #expect(refused == nil)
      #expect(try await bed.archived?.waiting.map(\.entry.track.url) == ["media:1"])
      #expect(try store.load().sessions.first?.rows.waitingCount == 1)
    }
  }

  @Test func `is as it was where NATS does not take a command, and keeps what the Router did`() async throws {
    try await with { bed, store in
      #expect(try await bed.add("1") == nil)
      bed.archive.server.end()
      let refused = try #require(try await bed.add("2"))
      #expect(refused.code == .storageFailed && refused.message.contains("JetStream"))
      #expect(try await bed.queued == ["media:1"])
      #expect(try await bed { $0.writer.problem }?.contains("NATS") == true)
      try await bed.setLoop(.queue)
      #expect(try await bed.add("3")?.code == .storageFailed)
      #expect(try await bed.queued == ["media:1"])
      try bed.archive.server.start()
      #expect(
        try await eventually {
          try await bed { $0.writer.savePositions(of: []) }
          return try await bed { $0.writer.problem } == nil
        })
      try await bed.archive.bucket.client.waitUntilConnected()
      let archived = try #require(try await bed.archived)
      #expect(archived.record.loop == .queue && archived.waiting.map(\.entry.track.url) == ["media:1"])
      let saved = try #require(try store.load().sessions.first)
      #expect(saved.loop == .queue && saved.rows.waitingCount == 1)
    }
  }

  /// The record reaches the server, and the answer does not come back: the command is refused, and must not be there.
  @Test func `is as it was where an answer of NATS is lost`() async throws {
    try await with { bed, _ in
      let refused = try await bed.add("1")
      #expect(refused == nil)
      // The row is the first publication.
      bed.archive.proxy.arm(.behind(publication: 1))
      #expect(try await bed.add("2")?.code == .storageFailed)
      #expect(
        try await eventually {
          try await bed { $0.writer.savePositions(of: []) }
          return try await bed.archived?.waiting.map(\.entry.track.url) == ["media:1"]
        })
      #expect(try await bed.queued == ["media:1"])
      #expect(try await bed.add("3") == nil)
      #expect(try await bed.archived?.waiting.map(\.entry.track.url) == ["media:1", "media:3"])
    }
  }

  @Test func `is given up once another Router has written it`() async throws {
    try await with { bed, store in
      #expect(try await bed.add("1") == nil)
      let other = bed.archive.archive()
      let id = try SessionID("a")
      let taken = try await ArchiveBed.withStore { otherStore in
        try await SessionImport(from: other, into: otherStore)(id)
      }
      #expect(taken != nil)
      let refused = try #require(try await bed.add("2"))
      #expect(refused.message.contains("moved to another Router"))
      #expect(try await bed { $0.overtaken } == [id])
      #expect(try await bed { $0.writer.problem } == nil)
      try await bed { $0.writer.relinquish($0.session) }
      #expect(await eventually { (try? store.load().sessions) == [] })
      #expect(try await bed.archived?.waiting.map(\.entry.track.url) == ["media:1"])
      // It may come back.
      let imported = try await bed { $0.writer.importSession(id) }.get()
      #expect(imported?.record.rows.waitingCount == 1)
      #expect(try store.load().sessions.map(\.id) == [id])
      #expect(try await bed { $0.writer.importSession(try SessionID("unknown")) }.get() == nil)
    }
  }
}
