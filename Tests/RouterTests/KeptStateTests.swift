import Foundation
import GRDB
import RouterCore
import Testing

/// What Routers of before have left on disks.
@Suite struct `The state of an older Router` {
  /// As the Router of the commit before queues had creators wrote it.
  private static let first = """
    CREATE TABLE answer (
      number INTEGER PRIMARY KEY, session_id TEXT NOT NULL, key TEXT NOT NULL, fingerprint TEXT NOT NULL,
      json TEXT NOT NULL, answered_ms INTEGER NOT NULL
    );
    INSERT INTO answer VALUES(1,'guild:1','k2','"44af48272bd23546"','{"queue":{"_0":"guild:1","_1":{"current":{"artwork":"https://example.org/b.png","id":"2","title":"B ♫","url":"https://example.org/b.ogg"},"history_total":1,"loop":"off","offset":0,"total":1,"tracks":[{"id":"3","url":"media:c.flac"}]}}}',1795396107914);
    CREATE TABLE grdb_migrations (identifier TEXT NOT NULL PRIMARY KEY);
    INSERT INTO grdb_migrations VALUES('queues'),('answers'),('repositories');
    CREATE TABLE played (
      session_id TEXT NOT NULL, number INTEGER NOT NULL, entry TEXT NOT NULL,
      PRIMARY KEY (session_id, number)
    ) WITHOUT ROWID;
    INSERT INTO played VALUES('guild:1',1,'{"artist":"X","duration_ms":1500,"id":"1","requested_by":"ann","title":"A","url":"media:a.flac"}');
    CREATE TABLE session (
      session_id TEXT PRIMARY KEY, volume REAL NOT NULL, loop TEXT NOT NULL, bitrate_kbps INTEGER,
      current TEXT, last_id INTEGER NOT NULL, last_played INTEGER NOT NULL, playing TEXT,
      has_begun INTEGER NOT NULL, prepared TEXT, position_ms INTEGER NOT NULL, touched_ms INTEGER NOT NULL
    ) WITHOUT ROWID;
    INSERT INTO session VALUES('guild:1',0.5,'queue',96,'{"artwork":"https://example.org/b.png","id":"2","title":"B ♫","url":"https://example.org/b.ogg"}',3,1,'{"loop":false,"paused":false,"startMilliseconds":0,"tag":"2.r2z6sp2samj86k-2","url":"https://example.org/b.ogg","volume":1}',0,NULL,0,4102444800000);
    INSERT INTO session VALUES('guild:2',0.25,'off',NULL,NULL,0,0,NULL,1,NULL,0,1000);
    CREATE TABLE repository (
      repository_id TEXT PRIMARY KEY, name TEXT NOT NULL, language TEXT, last_number INTEGER NOT NULL,
      last_played INTEGER NOT NULL, last_event_ms INTEGER NOT NULL, history TEXT
    ) WITHOUT ROWID;
    CREATE TABLE event (
      repository_id TEXT NOT NULL, number INTEGER NOT NULL, received_ms INTEGER NOT NULL,
      commits INTEGER NOT NULL, event TEXT NOT NULL, parameters TEXT, is_silent INTEGER NOT NULL,
      score TEXT,
      PRIMARY KEY (repository_id, number)
    ) WITHOUT ROWID;
    CREATE INDEX event_age ON event (received_ms);
    CREATE INDEX event_unplayed ON event (received_ms) WHERE parameters IS NULL;
    CREATE INDEX event_scored ON event (received_ms) WHERE score IS NOT NULL;
    CREATE TABLE delivery (delivery_id TEXT PRIMARY KEY, received_ms INTEGER NOT NULL) WITHOUT ROWID;
    CREATE INDEX delivery_age ON delivery (received_ms);
    CREATE TABLE setting (name TEXT PRIMARY KEY, value) WITHOUT ROWID;
    CREATE TABLE waiting (
      session_id TEXT NOT NULL, entry_id TEXT NOT NULL, rank INTEGER NOT NULL, entry TEXT NOT NULL,
      PRIMARY KEY (session_id, entry_id)
    ) WITHOUT ROWID;
    INSERT INTO waiting VALUES('guild:1','3',12884901888,'{"id":"3","url":"media:c.flac"}');
    """

  private func withState(_ sql: String, _ body: (StateStore, String) async throws -> Void) async throws {
    let folder = FileManager.default.temporaryDirectory.appending(path: "antiphon-\(UUID().uuidString)").path
    try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
    defer { try? FileManager.default.removeItem(atPath: folder) }
    let file = folder + "/router.sqlite"
    let database = try DatabaseQueue(path: file)
    try await database.write { database in try database.execute(sql: sql) }
    try database.close()
    let store = try StateStore(directory: folder)
    try await body(store, file)
  }

  private func queue(of record: SessionRecord, in store: StateStore) async throws -> LoadedQueue {
    try await withCheckedThrowingContinuation { (done: CheckedContinuation<LoadedQueue, any Error>) in
      store.loadQueue(of: record) { done.resume(with: $0) }
    }
  }

  @Test func `is read whole`() async throws {
    try await withState(Self.first) { store, _ in
      let state = try store.load()
      #expect(state.unreadable.isEmpty)
      let session = try #require(state.sessions.first { $0.id.description == "guild:1" })
      #expect(session.volume == 0.5 && session.loop == .queue && session.bitrateKilobits == 96)
      #expect(session.current?.track.title == "B \u{266B}")
      #expect(session.playing?.tag == "2.r2z6sp2samj86k-2" && !session.hasBegun)
      #expect(session.creator == .router)
      #expect(session.rows.waitingCount == 1 && session.rows.historyCount == 1)
      #expect(session.rows.byteCount > 2 * RouterLimits.entryOverheadByteCount)
      let loaded = try await queue(of: session, in: store)
      #expect(loaded.unreadable.isEmpty)
      #expect(loaded.queue.waiting.map(\.entry.track.url) == ["media:c.flac"])
      #expect(loaded.queue.history.first?.track.requestedBy == "ann")
      #expect(loaded.queue.history.first?.track.durationMilliseconds == 1_500)
      #expect(state.answers.map(\.intent.key.text) == ["k2"])
      try store.close()
    }
  }

  /// What a wall clock in the year 2100 has said makes nothing old.
  @Test func `has no age but its order`() async throws {
    try await withState(Self.first) { store, _ in
      let state = try store.load()
      let touched = Dictionary(
        uniqueKeysWithValues: state.sessions.map { ($0.id.description, $0.touchedMilliseconds) })
      #expect(touched == ["guild:2": 1, "guild:1": 2])
      #expect((3..<10_000).contains(state.clock.milliseconds()))
      #expect(state.answers.first?.answeredAtMilliseconds == 0)
      try store.close()
    }
  }

  @Test func `is put aside where it cannot be read, and the rest is there`() async throws {
    let newer = """
      UPDATE session SET playing = '{"v":2,"url":"media:a"}' WHERE session_id = 'guild:1';
      INSERT INTO waiting VALUES('guild:1','4',22884901888,'{"id":"4","v":2,"url":"media:d.flac"}');
      INSERT INTO waiting VALUES('guild:1','5',32884901888,'{"id":"5","v":1,"url":"media:e.flac"}');
      INSERT INTO played VALUES('guild:1',2,'not JSON');
      """
    try await withState(Self.first + newer) { store, file in
      let state = try store.load()
      #expect(state.unreadable.map(\.place) == ["playing"])
      let session = try #require(state.sessions.first { $0.id.description == "guild:1" })
      #expect(session.playing == nil && session.current != nil)
      let loaded = try await queue(of: session, in: store)
      #expect(loaded.queue.waiting.map(\.entry.id) == ["3", "5"])
      #expect(loaded.unreadable.map(\.place) == ["waiting 4", "played 2"])
      // Read once more, nothing is put aside twice.
      #expect(try await queue(of: session, in: store).unreadable.isEmpty)
      try store.close()
      let kept = try await DatabaseQueue(path: file).read { database in
        try Row.fetchAll(database, sql: "SELECT * FROM unreadable ORDER BY number").map {
          "\($0["session_id"] as String) \($0["place"] as String) \($0["content"] as String)"
        }
      }
      #expect(
        kept == [
          #"guild:1 playing {"v":2,"url":"media:a"}"#,
          #"guild:1 waiting 4 {"id":"4","v":2,"url":"media:d.flac"}"#, "guild:1 played 2 not JSON",
        ])
    }
  }
}
