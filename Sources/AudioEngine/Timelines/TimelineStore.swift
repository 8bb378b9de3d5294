import Dispatch
import Synchronization
import WireProtocol

/// Every timeline there is: equal keys share one, complete ones stay in a cache with a byte budget.
package final class TimelineStore: Sendable {
  fileprivate struct Entry {
    let timeline: Timeline
    var readers: Int
    /// Grows with every use: the smallest is the least recently used.
    var lastUse: UInt64
    /// Its source has become another: it is played to its end by who hears it, and found no more.
    var isStale = false
  }

  fileprivate struct State {
    /// By source and volume; each list holds timelines that begin at different places.
    var entries: [TrackKey: [Entry]] = [:]
    var uses: UInt64 = 0
    var productions = 0
    var hits = 0
  }

  private let state = Mutex(State())
  private let memory = TimelineMemory()
  private let cacheByteLimit: Int
  private let releases = DispatchQueue(label: "antiphon.releases")
  private let freshness: SourceFreshness
  private let produce: @Sendable (Timeline, TimelineStore) throws(ErrorReport) -> Void

  /// - Parameters:
  ///   - cacheByteLimit: what all timelines together may hold before complete ones are forgotten and
  ///     others are no longer read to their end.
  ///   - freshness: whether what is kept may be played again.
  ///   - produce: starts a timeline's production on a worker.
  package init(
    cacheByteLimit: Int, freshness: SourceFreshness,
    produce: @escaping @Sendable (Timeline, TimelineStore) throws(ErrorReport) -> Void
  ) {
    self.cacheByteLimit = cacheByteLimit
    self.freshness = freshness
    self.produce = produce
  }

  /// The timeline that covers a key's start, an existing one where there is one.
  ///
  /// - Parameters:
  ///   - isContinuation: asked for by a session that plays already.
  ///   - client: for whom.
  /// - Throws: `workers_exhausted`.
  package func acquire(
    _ key: TrackKey, isContinuation: Bool = false, client: String? = nil
  ) throws(ErrorReport) -> TimelineLease {
    let family = key.family
    let isFresh = freshness.check(of: key.source)
    let (timeline, isNew): (Timeline, Bool) = state.withLock { state in
      state.uses += 1
      state.retireStale(family, isFresh)
      let index = state.entries[family]?.firstIndex {
        !$0.isStale && $0.timeline.failure == nil
          && $0.timeline.covers(positionMilliseconds: key.startMilliseconds)
      }
      if let index {
        state.entries[family]![index].readers += 1
        state.entries[family]![index].lastUse = state.uses
        state.hits += 1
        return (state.entries[family]![index].timeline, false)
      }
      let timeline = Timeline(key: key, isContinuation: isContinuation, client: client, memory: memory)
      state.entries[family, default: []].append(
        Entry(timeline: timeline, readers: 1, lastUse: state.uses))
      return (timeline, true)
    }
    let lease = TimelineLease(timeline: timeline, store: self)
    // Where it throws, the lease goes with this scope, and with it the timeline that nobody fills.
    if isNew { try produce(timeline, self) }
    return lease
  }

  /// The last lease may go on the pacer's thread, which is not kept waiting for a lock or for megabytes to
  /// be freed.
  fileprivate func releaseLater(_ timeline: Timeline) {
    releases.async { [self] in release(timeline) }
  }

  /// Waits until every lease that has gone is seen to; for tests.
  package func finishReleases() { releases.sync {} }

  /// Called when a lease goes: what is complete stays, what nobody hears is not produced on.
  private func release(_ timeline: Timeline) {
    state.withLock { state in
      let family = timeline.key.family
      guard let index = state.entries[family]?.firstIndex(where: { $0.timeline === timeline }) else { return }
      state.entries[family]![index].readers -= 1
      guard state.entries[family]![index].readers == 0 else { return }
      if state.entries[family]![index].isStale || timeline.phase != .complete || timeline.isUncacheable
        || timeline.failure != nil
      {
        timeline.cancel()
        state.remove(family, at: index)
      }
      _ = state.forget(untilBelow: cacheByteLimit, of: memory.byteCount)
    }
  }

  /// Whether a timeline may grow beyond the read-ahead: the cache has room, if need be after forgetting
  /// complete timelines that nobody hears.
  ///
  /// One timeline is never given more than a quarter of the budget.
  package func hasRoom(for timeline: Timeline) -> Bool {
    guard timeline.byteCount < cacheByteLimit / 4 else { return false }
    return state.withLock { $0.forget(untilBelow: cacheByteLimit, of: memory.byteCount) }
  }

  /// A worker begins to produce a timeline from its source.
  package func countProduction() { state.withLock { $0.productions += 1 } }

  /// Figures for `/metrics`.
  package struct Statistics: Sendable {
    package var timelines: Int
    package var bytes: Int
    package var productions: Int
    package var hits: Int
  }

  package var statistics: Statistics {
    state.withLock { state in
      Statistics(
        timelines: state.entries.values.reduce(0) { $0 + $1.count }, bytes: memory.byteCount,
        productions: state.productions, hits: state.hits)
    }
  }
}

extension TimelineStore.State {
  /// Has timelines of what a source was found no more. What is still being produced from the web is what the
  /// source is now.
  mutating func retireStale(_ family: TrackKey, _ isFresh: (SourceIdentity) -> Bool) {
    guard let list = entries[family] else { return }
    for index in list.indices.reversed() {
      guard let identity = list[index].timeline.identity, !isFresh(identity) else { continue }
      if case .fetched = identity, list[index].timeline.phase != .complete { continue }
      if list[index].readers == 0 {
        remove(family, at: index)
      } else {
        entries[family]![index].isStale = true
      }
    }
  }

  /// The complete timeline without readers whose last use is longest ago.
  var leastRecentlyUsed: (family: TrackKey, index: Int)? {
    var oldest: (family: TrackKey, index: Int, use: UInt64)?
    for (family, list) in entries {
      for (index, entry) in list.enumerated() where entry.readers == 0 {
        if entry.lastUse < oldest?.use ?? .max { oldest = (family, index, entry.lastUse) }
      }
    }
    return oldest.map { ($0.family, $0.index) }
  }

  /// Forgets least recently used timelines; false where too much is still in use.
  mutating func forget(untilBelow byteLimit: Int, of byteCount: Int) -> Bool {
    var total = byteCount
    while total >= byteLimit {
      guard let (family, index) = leastRecentlyUsed else { return false }
      total -= entries[family]![index].timeline.byteCount
      remove(family, at: index)
    }
    return true
  }

  mutating func remove(_ family: TrackKey, at index: Int) {
    entries[family]!.remove(at: index)
    if entries[family]!.isEmpty { entries[family] = nil }
  }
}

/// One reader's hold on a timeline. When the last goes, production stops and only a complete timeline stays.
package final class TimelineLease: Sendable {
  package let timeline: Timeline
  private let store: TimelineStore

  fileprivate init(timeline: Timeline, store: TimelineStore) {
    self.timeline = timeline
    self.store = store
  }

  deinit { store.releaseLater(timeline) }
}
