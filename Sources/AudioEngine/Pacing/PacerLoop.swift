import Glibc
import ServiceSupport

/// What the pacer's thread does: it brings messages and the time to the director, sends what comes of them, and
/// waits.
///
/// Made on that thread and never seen by another.
struct PacerLoop: ~Copyable {
  /// Bytes put together before they are handed over though no packet is due: what a flood of commands is answered
  /// with takes no more memory than this.
  private static let flushByteCount = 1 << 20

  private let pacer: Pacer
  private let director: SessionDirector
  private var links: RouterLinks
  private var messages: [PacerMessage] = []
  private var pollDescriptors = [pollfd()]
  private var commandShare = CommandShare()
  private var publishedCounts = SessionCounts()

  init(pacer: Pacer, director: SessionDirector) {
    self.pacer = pacer
    self.director = director
    links = RouterLinks(statistics: pacer.statistics)
  }

  consuming func run() -> Never {
    while true {
      pacer.takeMessages(into: &messages)
      for message in messages { handleInTurn(message) }
      messages.removeAll(keepingCapacity: true)
      runRound()
      wait()
    }
  }

  /// Many commands at once make nobody's packet late, neither here nor at a router: what is due goes out before the
  /// next one.
  private mutating func handleInTurn(_ message: PacerMessage) {
    let start = MonotonicClock.nowNanoseconds
    handle(message, now: start)
    var now = MonotonicClock.nowNanoseconds
    commandShare.spend(from: start, to: now)
    if isRoundDue(now) { runRound() }
    while let due = director.roundDeadlineNanoseconds {
      now = MonotonicClock.nowNanoseconds
      let rest = commandShare.restNanoseconds(now: now)
      guard rest > 0 else { return }
      pacer.rest(nanoseconds: min(rest, due > now ? due - now : 0))
      runRound()
    }
  }

  private mutating func handle(_ message: PacerMessage, now: UInt64) {
    switch message {
    case .sessions(let message): director.handle(message, now: now)
    case .connected(let connection):
      // What has been put together so far was before it came: its first message is hello.
      flush()
      links.add(connection)
      director.connect(connection.id, now: now)
    case .disconnected(let id): disconnect(id)
    case .outOfBand(let line, let requestID, let connection):
      director.output.append(outOfBand: line, to: connection, requestID: requestID)
    case .ping(let answer): answer()
    }
  }

  private mutating func disconnect(_ id: RouterConnection.ID) {
    links.remove(id)
    director.disconnect(id)
  }

  /// Whether something is to be sent now, whatever else there is to do.
  private func isRoundDue(_ now: UInt64) -> Bool {
    if director.output.bytes.count >= Self.flushByteCount { return true }
    return director.roundDeadlineNanoseconds.map { $0 <= now } ?? false
  }

  private mutating func runRound() {
    let lateness = director.step(now: MonotonicClock.nowNanoseconds)
    let counts = director.counts
    if lateness != nil || counts != publishedCounts {
      publishedCounts = counts
      pacer.statistics.update {
        $0.sessions = counts
        if let lateness { $0.recordLateness(nanoseconds: lateness) }
      }
    }
    flush()
  }

  private mutating func flush() {
    let failed = links.send(director.output, now: MonotonicClock.nowNanoseconds)
    director.output.removeAll()
    for id in failed { disconnect(id) }
  }

  private mutating func wait() {
    pollDescriptors.removeSubrange(1...)
    links.appendBlocked(to: &pollDescriptors)
    let deadline = director.deadlineNanoseconds(now: MonotonicClock.nowNanoseconds)
    pacer.wait(until: deadline, descriptors: &pollDescriptors)
  }
}
