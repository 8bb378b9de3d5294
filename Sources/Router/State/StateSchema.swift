import GRDB

/// The tables of the Router's state. A released migration is never changed: the next one is added.
enum StateSchema {
  static func migrate(_ database: DatabaseQueue) throws {
    var migrator = DatabaseMigrator()
    migrator.registerMigration("queues") { database in
      try database.execute(
        sql: """
          CREATE TABLE session (
            session_id TEXT PRIMARY KEY, volume REAL NOT NULL, loop TEXT NOT NULL, bitrate_kbps INTEGER,
            current TEXT, last_id INTEGER NOT NULL, last_played INTEGER NOT NULL, playing TEXT,
            has_begun INTEGER NOT NULL, prepared TEXT, position_ms INTEGER NOT NULL, touched_ms INTEGER NOT NULL
          ) WITHOUT ROWID;
          CREATE TABLE waiting (
            session_id TEXT NOT NULL, entry_id TEXT NOT NULL, rank INTEGER NOT NULL, entry TEXT NOT NULL,
            PRIMARY KEY (session_id, entry_id)
          ) WITHOUT ROWID;
          CREATE TABLE played (
            session_id TEXT NOT NULL, number INTEGER NOT NULL, entry TEXT NOT NULL,
            PRIMARY KEY (session_id, number)
          ) WITHOUT ROWID;
          CREATE TABLE setting (name TEXT PRIMARY KEY, value) WITHOUT ROWID;
          """)
    }
    migrator.registerMigration("answers") { database in
      try database.execute(
        sql: """
          CREATE TABLE answer (
            number INTEGER PRIMARY KEY, session_id TEXT NOT NULL, key TEXT NOT NULL, fingerprint TEXT NOT NULL,
            json TEXT NOT NULL, answered_ms INTEGER NOT NULL
          );
          """)
    }
    migrator.registerMigration("repositories") { database in
      try database.execute(
        sql: """
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
          """)
    }
    migrator.registerMigration("session creators") { database in
      // Ages were of the wall clock. By the running time, which begins here, the order of before is all that stays.
      try database.execute(
        sql: """
          ALTER TABLE session ADD COLUMN creator TEXT;
          ALTER TABLE session ADD COLUMN waiting_count INTEGER NOT NULL DEFAULT 0;
          ALTER TABLE session ADD COLUMN history_count INTEGER NOT NULL DEFAULT 0;
          ALTER TABLE session ADD COLUMN row_bytes INTEGER NOT NULL DEFAULT 0;
          UPDATE session SET touched_ms = place FROM (
            SELECT session_id AS id, ROW_NUMBER() OVER (ORDER BY touched_ms) AS place FROM session
          ) WHERE session_id = id;
          UPDATE session SET
            waiting_count = (SELECT COUNT(*) FROM waiting WHERE waiting.session_id = session.session_id),
            history_count = (SELECT COUNT(*) FROM played WHERE played.session_id = session.session_id),
            row_bytes =
              (SELECT IFNULL(SUM(LENGTH(CAST(entry AS BLOB)) + \(RouterLimits.entryOverheadByteCount)), 0)
                FROM waiting WHERE waiting.session_id = session.session_id)
              + (SELECT IFNULL(SUM(LENGTH(CAST(entry AS BLOB)) + \(RouterLimits.entryOverheadByteCount)), 0)
                FROM played WHERE played.session_id = session.session_id);
          ALTER TABLE answer ADD COLUMN client TEXT;
          UPDATE answer SET answered_ms = 0;
          INSERT INTO setting SELECT 'running_ms', COUNT(*) + 1 FROM session;
          CREATE TABLE unreadable (
            number INTEGER PRIMARY KEY, session_id TEXT NOT NULL, place TEXT NOT NULL, content TEXT NOT NULL
          );
          """)
    }
    migrator.registerMigration("repository creators") { database in
      // Who made it by a test event; what is there already counts as GitHub's.
      try database.execute(sql: "ALTER TABLE repository ADD COLUMN creator TEXT NOT NULL DEFAULT 'router'")
    }
    migrator.registerMigration("crashes") { database in
      try database.execute(
        sql: """
          CREATE TABLE crash (
            address TEXT PRIMARY KEY, weight INTEGER NOT NULL, is_late INTEGER NOT NULL,
            passed_trials INTEGER NOT NULL, is_open INTEGER NOT NULL, changed_ms INTEGER NOT NULL,
            refused_until_ms INTEGER
          ) WITHOUT ROWID;
          """)
    }
    migrator.registerMigration("event ages") { database in
      // By the running time, as sessions have theirs: the ages of existing rows begin at zero.
      try database.execute(
        sql: """
          ALTER TABLE event ADD COLUMN kept_ms INTEGER NOT NULL DEFAULT 0;
          ALTER TABLE delivery ADD COLUMN kept_ms INTEGER NOT NULL DEFAULT 0;
          UPDATE event SET kept_ms = IFNULL((SELECT value FROM setting WHERE name = 'running_ms'), 0);
          UPDATE delivery SET kept_ms = IFNULL((SELECT value FROM setting WHERE name = 'running_ms'), 0);
          DROP INDEX event_age;
          DROP INDEX delivery_age;
          CREATE INDEX event_age ON event (kept_ms);
          CREATE INDEX delivery_age ON delivery (kept_ms);
          """)
    }
    guard try !database.read(migrator.hasBeenSuperseded) else {
      throw StateStore.OpenError(
        description:
          "it was written by a newer version; install that version, or restore the backup made before the upgrade"
      )
    }
    try migrator.migrate(database)
  }
}
