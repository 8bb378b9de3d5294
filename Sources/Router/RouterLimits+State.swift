/// What sessions, their queues and the disk may take.
extension RouterLimits {
  /// Sessions that one client may have made and that are kept: a bot has one a guild, and ten times as many with
  /// `admin`. Past it the client's own session that was left alone longest makes room.
  package static let maximumSessionsPerClient = 2_000

  /// Commands that wait for the disk, or for a queue that is read from it: of all clients, and of one, as many as it
  /// may have in flight. A bot with 1,000 guilds that comes back after the Router's restart has each queue read at
  /// once.
  package static let maximumDiskWaiters = 4_096
  package static let maximumDiskWaitersPerClient = clientCommandsInFlight

  /// What an entry takes besides its texts: its struct twice, since arrays double, and their headers.
  package static let entryOverheadByteCount = 256

  /// One queue with its history: 10,000 entries with 580 bytes of text each.
  package static let queueByteCount = 8_388_608

  /// One history: 100 entries with 1,000 bytes of text each. Past it the oldest go, since what plays cannot be
  /// refused.
  package static let historyByteCount = 131_072

  /// One history of a client that has so many sessions. All its histories together take half of its share of the
  /// queues at most, so that no play is refused for what has played.
  package static func historyByteCount(sessions count: Int, share: Int) -> Int {
    min(historyByteCount, share / 2 / max(1, count))
  }

  /// All queues of the sessions that one client has made: four of the largest. Whatever its factor, a client gets at
  /// most half of what is kept for all.
  package static let clientQueueByteCount = 33_554_432
  package static let maximumClientQueueByteCount = 134_217_728

  /// All queues on disk.
  package static let storedQueueByteCount = 268_435_456

  /// All queues in memory. The Router has 41 MiB without any, malloc keeps half as much again, and it is to stay
  /// below 150.
  package static let memoryQueueByteCount = 50_331_648

  /// Freed blocks of this size and more leave the memory: bodies and answers that come rarely and all at once.
  static let returnedBlockByteCount: Int32 = 131_072

  /// A queue that nobody hears and that does not play leaves the memory after this long.
  package static let idleQueueSeconds: Int64 = 300

  /// What waits for a queue to be read: events of its session. A queue is read in 0.2 s.
  package static let maximumDeferredSteps = 10_000

  /// Collected changes of one queue beyond the number of its rows: past it the whole queue is written.
  package static let collectedChangesSlack = 64

  /// How long the Router may run before its clock is written where nothing else is.
  package static let clockCheckpointSeconds = 60

  // MARK: The archive

  /// How long NATS has to answer.
  static let archiveTimeoutSeconds: Int64 = 5
  /// And where it may be asked again: while JetStream chooses a leader nobody answers.
  static let archiveQuestionSeconds: Int64 = 2

  /// All sessions' rows and records of all Routers: four times what one Router keeps of queues.
  static let archiveByteCount = 4 * storedQueueByteCount

  /// Requests to NATS that wait for their answer, and what they take: half of what its client may have to send.
  static let archiveRequestCount = 256
  static let archiveRequestByteCount = 2_097_152

  /// How often at most the position of a session that plays is archived where nothing else changes.
  package static let archivedPositionMilliseconds = 5_000

  /// How often a session is read that another Router writes meanwhile.
  static let archiveReadAttempts = 5

  /// Rows that a record may name: a longer one is damaged. What plays can be put back to a full queue.
  static let maximumArchivedRows = 4 * maximumQueueEntries

  /// Revisions of rows that wait to be erased: as many as ten of the longest queues.
  static let maximumArchiveGarbage = 100_000
}
