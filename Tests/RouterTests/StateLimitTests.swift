import RouterCore
import Testing

@Suite struct `Commands that wait for the disk` {
  private let greedy = ClientID(subject: "greedy", address: nil)

  @Test func `are limited for each client, and another's are not refused`() throws {
    var waiters = DiskWaiters()
    for _ in 0..<RouterLimits.maximumDiskWaitersPerClient { try waiters.enter(greedy) }
    let requestError = #expect(throws: RequestError.self) { try waiters.requireRoom(for: greedy) }
    #expect(requestError?.report.code == .overloaded && requestError?.status == 503)
    try waiters.enter(ClientID(subject: "other", address: nil))
    waiters.leave(greedy)
    try waiters.enter(greedy)
  }

  @Test func `are limited in all, and the Router's own are not`() throws {
    var waiters = DiskWaiters()
    for number in 0..<RouterLimits.maximumDiskWaiters {
      try waiters.enter(ClientID(subject: "\(number)", address: nil))
    }
    #expect(throws: RequestError.self) { try waiters.requireRoom(for: greedy) }
    try waiters.requireRoom(for: .router)
  }
}

@Suite struct `What is collected of a queue` {
  @Test func `is one order, however often it is shuffled`() throws {
    var queue = TrackQueue()
    _ = try queue.add(Array(repeating: QueuedTrack(url: "media:a"), count: 500), isSessionIdle: false)
    var changes = QueueChanges(queue.takeChanges())
    for _ in 0..<20 {
      queue.shuffle()
      changes.append(queue.takeChanges())
    }
    #expect(changes.rowCount == 1_000)
    #expect(changes.list.count == 501)
  }
}

@Suite struct `A queue's bytes` {
  private func track(_ byteCount: Int) -> QueuedTrack {
    QueuedTrack(url: "media:" + String(repeating: "a", count: byteCount - 6))
  }

  @Test func `leave room for ten thousand usual tracks`() throws {
    var queue = TrackQueue()
    for _ in 0..<20 {
      _ = try queue.add(Array(repeating: track(200), count: 500), isSessionIdle: false)
    }
    #expect(queue.waiting.count == 10_000)
  }

  @Test func `have a bound, beyond which nothing is added and the bound is named`() throws {
    var queue = TrackQueue()
    var requestError: RequestError?
    while requestError == nil {
      do { _ = try queue.add([track(4_000)], isSessionIdle: false) } catch { requestError = error }
    }
    #expect(requestError?.report.code == .queueFull)
    #expect(requestError?.report.message.contains("\(RouterLimits.queueByteCount)") == true)
    #expect((RouterLimits.queueByteCount - 4_300...RouterLimits.queueByteCount).contains(queue.byteCount))
    queue.clear()
    #expect(queue.byteCount == 0)
  }

  @Test func `have a bound in the history, whose oldest go`() throws {
    var queue = TrackQueue()
    for _ in 0..<100 { queue.nowPlays(queue.newEntry(track(4_000))) }
    #expect(queue.history.count < 40)
    #expect(queue.history.last?.id == "99")
    #expect(queue.rowsByteCount <= RouterLimits.historyByteCount)
  }

  @Test func `are fewer in each history of a client with many sessions`() throws {
    let share = RouterLimits.clientQueueByteCount
    #expect(RouterLimits.historyByteCount(sessions: 0, share: share) == RouterLimits.historyByteCount)
    #expect(RouterLimits.historyByteCount(sessions: 1_000, share: share) == 16_777)
    var queue = TrackQueue()
    for _ in 0..<50 { queue.nowPlays(queue.newEntry(track(500))) }
    queue.historyByteLimit = 16_777
    queue.nowPlays(queue.newEntry(track(500)))
    #expect(queue.history.count == 16_777 / (500 + RouterLimits.entryOverheadByteCount))
    #expect(queue.history.last?.id == "50")
  }
}

@Suite struct `The Router's running time` {
  @Test func `goes on where it stopped, whatever the clock on the wall says`() {
    let first = CumulativeUptimeClock(base: 0, monotonic: 5_000_000_000)
    #expect(first.milliseconds(monotonic: 5_000_000_000) == 0)
    #expect(first.milliseconds(monotonic: 8_500_000_000) == 3_500)
    // After a restart of the machine, whose monotonic clock begins again.
    let second = CumulativeUptimeClock(base: 3_500, monotonic: 1_000_000_000)
    #expect(second.milliseconds(monotonic: 2_000_000_000) == 4_500)
  }
}
