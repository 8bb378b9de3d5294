import Logging
import NATS
import NIOCore
import ServiceSupport
import WireProtocol

/// Stores repository events for several Routers. JetStream has the events with their music, those of a repository under one
/// key, in one order for all; each Router writes them to its own disk in that order, and plays new ones. An event is written
/// with the expected revision of its repository's last one, so its number is given once, and a delivery that two Routers
/// receive is stored once.
package actor SharedEvents: EventKeeper {
  private let bucket: KeyValueBucket
  private let replicas: Int
  private let log: EventLog
  private let repositories: Repositories
  private let composer: EventComposer
  private let bus: EventBus
  private let statistics: RepositoryStatistics
  private let logger: Logger
  /// The last revision that the watch has reported of the bucket, and of each repository, which its next write expects.
  private var applied: UInt64 = 0
  private var revisions: [SessionID: UInt64] = [:]
  /// The highest reported revision of each repository: up to it a watch that starts again repeats events.
  private var highest: [SessionID: UInt64] = [:]
  /// Whether all events from before the start are applied: later ones are played.
  private var isCurrent = false
  /// Repositories whose last event this Router cannot read.
  private var unreadable: Set<SessionID> = []
  /// When this Router last wrote that a source was polled.
  private var pollMarkWrittenAt: [String: ContinuousClock.Instant] = [:]
  /// The last write of each repository, which the next waits for.
  private var writes: [SessionID: (number: Int, task: Task<Void, Never>)] = [:]
  private var lastWrite = 0
  private var isStopped = false
  /// How long storing a delivery may take.
  private let appendTimeout: Duration
  private var waiters: [Int: (revision: UInt64, continuation: CheckedContinuation<Void, Never>)] = [:]
  private var lastWaiter = 0
  package private(set) var problem: String? = "repository events have not been loaded yet"

  package init(
    client: NATSClient, replicas: Int, log: EventLog, repositories: Repositories, bus: EventBus,
    statistics: RepositoryStatistics, logger: Logger,
    appendTimeout: Duration = .seconds(RouterLimits.sharedEventSeconds)
  ) {
    bucket = KeyValueBucket(
      own: "antiphon-repositories", client: client, seconds: RouterLimits.sharedEventAnswerSeconds)
    self.replicas = replicas
    self.appendTimeout = appendTimeout
    self.log = log
    self.repositories = repositories
    self.bus = bus
    self.statistics = statistics
    self.logger = logger
    composer = EventComposer(repositories: repositories, logger: logger)
  }

  // MARK: Applying events

  package func run() async {
    await open()
    let (events, continuation) = AsyncStream.makeStream(of: KeyValueWatchEvent.self)
    guard !Task.isCancelled,
      let watch = try? bucket.watch(withHistory: true, { continuation.yield($0) })
    else { return }
    for await event in events {
      switch event {
      case .entry(let entry): await take(entry)
      case .current:
        isCurrent = true
        problem = nil
      }
    }
    watch.cancel()
    isStopped = true
    for number in waiters.keys { endWaiting(number) }
  }

  /// Creates the bucket; retries until it succeeds.
  private func open() async {
    while !Task.isCancelled {
      try? await bucket.client.waitUntilConnected(timeout: .milliseconds(RouterLimits.homeRetryMilliseconds))
      do throws(KeyValueError) { return try await makeBucket() } catch {
        problem = "repository events cannot be stored in JetStream: \(error)"
        try? await Task.sleep(for: .milliseconds(RouterLimits.homeRetryMilliseconds))
      }
    }
  }

  /// Creates the bucket if it does not exist. The revisions of a bucket that replaces a lost one are above those applied before.
  private func makeBucket() async throws(KeyValueError) {
    var settings = KeyValueBucket.Settings()
    settings.replicas = replicas
    settings.history = RouterLimits.maximumEventsPerRepository
    settings.maximumByteCount = RouterLimits.sharedEventsByteCount
    settings.discardsOldest = true
    try await bucket.createIfMissing(settings, startsAtTime: true)
  }

  private func take(_ entry: KeyValueEntry) async {
    if entry.key.hasPrefix(Self.markPrefix) {
      if let source = entry.value.map({ String(buffer: $0) }) {
        await retryUntilDone { [log] in try await log.applyPollMark(of: source) }
      }
    } else if let event = entry.value.flatMap(Self.decode) {
      await retryUntilDone { [self] in try await take(event, entry.revision) }
    } else if let id = SessionID(eventsKey: entry.key) {
      revisions[id] = entry.revision
      // A missing value is a deletion.
      if entry.value != nil, unreadable.insert(id).inserted {
        logger.error(
          "skipping an event that is damaged or was written by a newer version",
          metadata: ["session": "\(id)"])
      }
    }
    applied = entry.revision
    for (number, waiter) in waiters where waiter.revision <= applied { endWaiting(number) }
  }

  private func take(_ event: SharedEvent, _ revision: UInt64) async throws {
    let id = event.event.repositoryID
    let repository = try await log.apply(event, mayBeRedelivered: revision <= highest[id] ?? 0)
    revisions[id] = revision
    unreadable.remove(id)
    guard let repository else {
      highest[id] = max(highest[id] ?? 0, revision)
      return
    }
    highest[id] = revision
    if let evicted = event.evicted {
      revisions[evicted] = nil
      highest[evicted] = nil
      unreadable.remove(evicted)
    }
    repositories.record(repository, evicted: event.evicted)
    // A log that was restored from an older copy is read again, and not played again.
    let age = Int(Grant.nowMilliseconds) - event.writtenMilliseconds
    guard isCurrent, age < RouterLimits.sharedEventHeardMilliseconds, let music = event.composed.music else {
      return
    }
    bus.publish(music, on: .musicGenerated)
  }

  /// Repeats what fails; later events wait.
  private func retryUntilDone(_ work: () async throws -> Void) async {
    while !Task.isCancelled {
      do { return try await work() } catch {
        logger.error("an event of a repository could not be saved: \(error)")
        try? await Task.sleep(for: .seconds(RouterLimits.composeRetrySeconds))
      }
    }
  }

  // MARK: Writing events

  package func append(
    _ event: RepositoryEvent, testOf tester: Grant? = nil
  ) async throws -> EventLog.Appended {
    let id = event.repositoryID
    let (before, deadline) = (writes[id]?.task, ContinuousClock.now + appendTimeout)
    let write = Task {
      await before?.value
      return try await self.write(event, tester, until: deadline)
    }
    lastWrite += 1
    let number = lastWrite
    writes[id] = (number, Task { _ = await write.result })
    defer { if writes[id]?.number == number { writes[id] = nil } }
    return try await write.value
  }

  private func write(
    _ event: RepositoryEvent, _ tester: Grant?, until deadline: ContinuousClock.Instant
  ) async throws -> EventLog.Appended {
    let id = event.repositoryID
    var failure = problem ?? "the write of an event did not get through in time"
    /// Whether a write of this Router may have succeeded.
    var mayBeWritten = false
    while !isStopped, ContinuousClock.now < deadline {
      guard isCurrent else {
        try await Task.sleep(for: .milliseconds(RouterLimits.sharedEventRetryMilliseconds))
        continue
      }
      guard !unreadable.contains(id) else {
        throw ArchiveError.unavailable(
          "the last event of the repository \(id) cannot be read: it is damaged or was written by a newer version"
        )
      }
      // Before the disk is read: an event that is applied meanwhile makes the write fail.
      let expected = revisions[id] ?? 0
      guard let (draft, before) = try await log.draft(event, testOf: tester) else { return .duplicate }
      var history = before
      let composed = composer.compose(draft.logged, &history)
      let shared = SharedEvent(
        draft, composed, history, writtenMilliseconds: Int(Grant.nowMilliseconds))
      let value = ByteBuffer(bytes: JSON.versionedBytes(shared))
      do throws(KeyValueError) {
        let revision = try await bucket.update(id.eventsKey, value, revision: expected)
        if shared.score != nil { statistics.countPiece() }
        if let evicted = draft.evicted { try? await bucket.purge(evicted.eventsKey, through: revision) }
        await waitUntilApplied(revision, until: deadline)
        return .new(draft.logged, draft.repository, evicted: draft.evicted)
      } catch {
        failure = error.description
        if error == .noJetStream || error == .noBucket { try? await makeBucket() }
        if error.isOutcomeUnknown { mayBeWritten = true }
        if error == .wrongRevision || error.isOutcomeUnknown,
          let found = try? await find(event, until: deadline)
        {
          // Another Router has written it.
          guard mayBeWritten else { return .duplicate }
          return .new(found.logged, found.repository(lastEventMilliseconds: 0), evicted: found.evicted)
        }
        try await Task.sleep(
          for: .milliseconds(
            error == .wrongRevision
              ? RouterLimits.sharedEventRetryMilliseconds : RouterLimits.homeRetryMilliseconds))
      }
    }
    throw ArchiveError.unavailable(failure)
  }

  /// The outcome of a write that was rejected, or had no answer. Waits until the repository's last event is applied.
  ///
  /// - Returns: the event, where it is its repository's last.
  private func find(
    _ event: RepositoryEvent, until deadline: ContinuousClock.Instant
  ) async throws -> SharedEvent? {
    let id = event.repositoryID
    let known = revisions[id]
    guard let entry = try await bucket.last(id.eventsKey, from: .leader) else {
      // JetStream has lost it, or a Router has evicted it.
      if revisions[id] == known { revisions[id] = nil }
      return nil
    }
    if known == nil, revisions[id] == nil, entry.revision <= applied {
      // A Router evicted this repository and died before it purged the events.
      try await bucket.purge(id.eventsKey, through: entry.revision)
      return nil
    }
    await waitUntilApplied(entry.revision, until: deadline)
    return entry.value.flatMap(Self.decode).flatMap { $0.event.deliveryID == event.deliveryID ? $0 : nil }
  }

  package func keepPollMark(_ mark: String, of source: String) async throws {
    try await log.keepPollMark(mark, of: source)
    // Repeated from time to time, since the oldest values are discarded where the bucket is full.
    if let pollMarkWrittenAt = pollMarkWrittenAt[source],
      ContinuousClock.now - pollMarkWrittenAt < .seconds(RouterLimits.pollMarkSeconds)
    {
      return
    }
    let key = Self.markPrefix + ContentHash.hexadecimal(source.utf8)
    try await bucket.put(key, ByteBuffer(string: source))
    pollMarkWrittenAt[source] = .now
  }

  private static let markPrefix = "polled."

  private static func decode(_ value: ByteBuffer) -> SharedEvent? {
    try? JSON.decode(Versioned<SharedEvent>.self, from: Array(value.readableBytesView)).value
  }

  // MARK: Waiting

  private func waitUntilApplied(_ revision: UInt64, until deadline: ContinuousClock.Instant) async {
    guard applied < revision else { return }
    lastWaiter += 1
    let number = lastWaiter
    let timer = Task {
      try await Task.sleep(until: deadline)
      endWaiting(number)
    }
    await withCheckedContinuation { waiters[number] = (revision, $0) }
    timer.cancel()
  }

  private func endWaiting(_ number: Int) { waiters.removeValue(forKey: number)?.continuation.resume() }
}

extension SessionID {
  private static let eventsPrefix = "events."

  /// The key of a repository's events.
  fileprivate var eventsKey: String { Self.eventsPrefix + keyToken }

  fileprivate init?(eventsKey: String) {
    guard eventsKey.hasPrefix(Self.eventsPrefix) else { return nil }
    self.init(keyToken: String(eventsKey.dropFirst(Self.eventsPrefix.count)))
  }
}
