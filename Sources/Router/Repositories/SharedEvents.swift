import Logging
import NATS
import NIOCore
import ServiceSupport
import WireProtocol

/// Keeps what happens in repositories where there are several Routers. JetStream has the events with their music, a
/// repository's under one key, in one order for all; each Router writes them to its own disk in that order, and hears those
/// that come. An event is written with the revision of its repository's last one, so that its number is given once, and a
/// delivery that two Routers have is kept once.
package actor SharedEvents: EventKeeper {
  private let bucket: KeyValueBucket
  private let replicas: Int
  private let log: EventLog
  private let repositories: Repositories
  private let composer: EventComposer
  private let bus: EventBus
  private let statistics: RepositoryStatistics
  private let logger: Logger
  /// What was told last of the bucket, and of each repository: what its next write expects.
  private var applied: UInt64 = 0
  private var revisions: [SessionID: UInt64] = [:]
  /// The highest revision that was told of each repository: up to it a watch that begins anew tells again.
  private var highest: [SessionID: UInt64] = [:]
  /// Whether all that was there at the start is applied: what comes then is heard.
  private var isCurrent = false
  /// Repositories whose last event this Router cannot read.
  private var unreadable: Set<SessionID> = []
  /// When this Router last wrote that a source was polled.
  private var marked: [String: ContinuousClock.Instant] = [:]
  /// The last write of each repository, which the next waits for.
  private var writes: [SessionID: (number: Int, task: Task<Void, Never>)] = [:]
  private var lastWrite = 0
  private var isStopped = false
  /// How long a delivery may take to be kept.
  private let patience: Duration
  private var waiters: [Int: (revision: UInt64, continuation: CheckedContinuation<Void, Never>)] = [:]
  private var lastWaiter = 0
  package private(set) var problem: String? = "the events of repositories are not read yet"

  package init(
    client: NATSClient, replicas: Int, log: EventLog, repositories: Repositories, bus: EventBus,
    statistics: RepositoryStatistics, logger: Logger,
    patience: Duration = .seconds(RouterLimits.sharedEventSeconds)
  ) {
    bucket = KeyValueBucket(
      own: "antiphon-repositories", client: client, seconds: RouterLimits.sharedEventAnswerSeconds)
    self.replicas = replicas
    self.patience = patience
    self.log = log
    self.repositories = repositories
    self.bus = bus
    self.statistics = statistics
    self.logger = logger
    composer = EventComposer(repositories: repositories, logger: logger)
  }

  // MARK: What comes

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

  /// Makes the bucket, until that has worked.
  private func open() async {
    while !Task.isCancelled {
      try? await bucket.client.waitUntilConnected(timeout: .milliseconds(RouterLimits.homeRetryMilliseconds))
      do throws(KeyValueError) { return try await makeBucket() } catch {
        problem = "the events of repositories cannot be kept at NATS: \(error)"
        try? await Task.sleep(for: .milliseconds(RouterLimits.homeRetryMilliseconds))
      }
    }
  }

  /// Makes the bucket where it is not there. Revisions of one that is lost and made anew are above what was applied before.
  private func makeBucket() async throws(KeyValueError) {
    var settings = KeyValueBucket.Settings()
    settings.replicas = replicas
    settings.history = RouterLimits.maximumEventsPerRepository
    settings.maximumByteCount = RouterLimits.sharedEventsByteCount
    settings.discardsOldest = true
    try await bucket.createUnlessThere(settings)
    try await bucket.beginRevisionsWithTime()
  }

  private func take(_ entry: KeyValueEntry) async {
    if entry.key.hasPrefix(Self.markPrefix) {
      if let source = entry.value.map({ String(buffer: $0) }) {
        await untilDone { [log] in try await log.applyPollMark(of: source) }
      }
    } else if let event = entry.value.flatMap(Self.decode) {
      await untilDone { [self] in try await take(event, entry.revision) }
    } else if let id = SessionID(eventsKey: entry.key) {
      revisions[id] = entry.revision
      // Somebody has deleted it otherwise.
      if entry.value != nil, unreadable.insert(id).inserted {
        logger.error(
          "an event is damaged, or of a newer Antiphon: it is left out", metadata: ["session": "\(id)"])
      }
    }
    applied = entry.revision
    for (number, waiter) in waiters where waiter.revision <= applied { endWaiting(number) }
  }

  private func take(_ event: SharedEvent, _ revision: UInt64) async throws {
    let id = event.event.repositoryID
    let repository = try await log.apply(event, mayBeToldAgain: revision <= highest[id] ?? 0)
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
    }
    // Its events were lost at JetStream, and are counted anew.
    if repositories.repository(repository.id).map({ $0.lastNumber >= event.number }) == true {
      repositories.forget(repository.id)
    }
    repositories.recordDelivery(repository, evicted: event.evicted)
    repositories.recordComposed(repository.id, number: event.number)
    // A log that was put back to an older copy is read again, and not heard again.
    let age = Int(Grant.nowMilliseconds) - event.writtenMilliseconds
    guard isCurrent, age < RouterLimits.sharedEventHeardMilliseconds, let music = event.composed.music else {
      return
    }
    bus.publish(music, on: .musicGenerated)
  }

  /// Nothing is left out: what comes later waits.
  private func untilDone(_ work: () async throws -> Void) async {
    while !Task.isCancelled {
      do { return try await work() } catch {
        logger.error("an event of a repository could not be saved: \(error)")
        try? await Task.sleep(for: .seconds(RouterLimits.composeRetrySeconds))
      }
    }
  }

  // MARK: What is written

  package func append(
    _ event: RepositoryEvent, testOf tester: Grant? = nil
  ) async throws -> EventLog.Appended {
    let id = event.repositoryID
    let (before, deadline) = (writes[id]?.task, ContinuousClock.now + patience)
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
    while !isStopped, ContinuousClock.now < deadline {
      guard isCurrent else {
        try await Task.sleep(for: .milliseconds(RouterLimits.sharedEventRetryMilliseconds))
        continue
      }
      guard !unreadable.contains(id) else {
        throw ArchiveError.unavailable("a newer Antiphon has written of \(id)")
      }
      // Before the disk is read: what is applied meanwhile has the write refused.
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
        if error == .wrongRevision || error.isOutcomeUnknown,
          let found = try? await find(event, until: deadline)
        {
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

  /// What became of a write that was refused, or had no answer. Waits for what was written instead.
  ///
  /// - Returns: the event, where it is its repository's last.
  private func find(
    _ event: RepositoryEvent, until deadline: ContinuousClock.Instant
  ) async throws -> SharedEvent? {
    let id = event.repositoryID
    let known = revisions[id]
    guard let entry = try await bucket.last(id.eventsKey, from: .leader) else {
      // JetStream has lost what was there, or somebody has evicted it.
      if revisions[id] == known { revisions[id] = nil }
      return nil
    }
    if known == nil, revisions[id] == nil, entry.revision <= applied {
      // A repository that was evicted by a Router which died before it had taken the events away.
      try await bucket.purge(id.eventsKey, through: entry.revision)
      return nil
    }
    await waitUntilApplied(entry.revision, until: deadline)
    return entry.value.flatMap(Self.decode).flatMap { $0.event.deliveryID == event.deliveryID ? $0 : nil }
  }

  package func keepPollMark(_ mark: String, of source: String) async throws {
    try await log.keepPollMark(mark, of: source)
    // Now and then, since the oldest go where there is no room.
    if let marked = marked[source], ContinuousClock.now - marked < .seconds(RouterLimits.pollMarkSeconds) {
      return
    }
    let key = Self.markPrefix + ContentHash.hexadecimal(source.utf8)
    try await bucket.put(key, ByteBuffer(string: source))
    marked[source] = .now
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

  /// Under which a repository's events are.
  fileprivate var eventsKey: String { Self.eventsPrefix + keyToken }

  fileprivate init?(eventsKey: String) {
    guard eventsKey.hasPrefix(Self.eventsPrefix) else { return nil }
    self.init(keyToken: String(eventsKey.dropFirst(Self.eventsPrefix.count)))
  }
}
