import CLinux
import Dispatch
import Glibc
import ServiceSupport
import Synchronization
import WireProtocol

/// What reaches the pacer's thread.
enum PacerMessage: Sendable {
  case connected(RouterConnection)
  case disconnected(RouterConnection.ID)
  case sessions(SessionMessage)
  /// An answer that concerns no session.
  case outOfBand(AnswerLine, requestID: String?, RouterConnection.ID)
  /// Is answered between two rounds.
  case ping(@Sendable () -> Void)
}

/// The one thread that keeps time: every 2 ms it takes the packet under the cursor of every session that is
/// due and hands them all to each router in one write. What the sessions do is decided by the `SessionDirector`.
///
/// A round allocates nothing while no session changes its state, and its sending never blocks.
package final class Pacer: Sendable {
  private static let maximumWaitingMessages = 1_024

  private let mailbox = Mutex<[PacerMessage]>([])
  private let wakeDescriptor: Int32
  package let statistics = PacerStatistics()
  /// Told of every session's errors, on the pacer's thread.
  let onFailure: @Sendable (ErrorReport, SessionID) -> Void
  /// Told of every session's beginning and end, on the pacer's thread.
  let onChange: @Sendable (SessionChange, SessionID) -> Void

  package init(
    onFailure: @escaping @Sendable (ErrorReport, SessionID) -> Void = { _, _ in },
    onChange: @escaping @Sendable (SessionChange, SessionID) -> Void = { _, _ in }
  ) {
    self.onFailure = onFailure
    self.onChange = onChange
    wakeDescriptor = antiphon_eventfd()
  }

  deinit { close(wakeDescriptor) }

  /// Starts the thread, which runs for as long as the process does.
  package func start(
    limits: Hello.Limits, startedAtMilliseconds: Int, idleTimeoutSeconds: Int, splicer: Splicer,
    acquireTimeline: @escaping @Sendable (SessionID, UInt64, TrackKey, _ client: String?) -> Void
  ) throws(ErrorReport) {
    try EngineThread.start(name: "pacer") { [self] in
      antiphon_set_exact_wakeups()
      ThreadPriority.goFirst()
      let director = SessionDirector(
        limits: limits, startedAtMilliseconds: startedAtMilliseconds,
        idleTimeoutNanoseconds: UInt64(idleTimeoutSeconds) * 1_000_000_000,
        now: MonotonicClock.nowNanoseconds,
        effects: PacerEffects(pacer: self, splicer: splicer, acquireTimeline: acquireTimeline))
      PacerLoop(pacer: self, director: director).run()
    }
  }

  func post(_ message: PacerMessage) {
    mailbox.withLock { $0.append(message) }
    var one: UInt64 = 1
    _ = write(wakeDescriptor, &one, 8)
  }

  func post(_ message: SessionMessage) { post(.sessions(message)) }

  /// Blocks a thread that brings commands while the pacer has as many as it should have.
  func waitForRoom() {
    EngineThread.wait { mailbox.withLock { $0.count } >= Self.maximumWaitingMessages }
  }

  package func timelineChanged(_ timeline: Timeline) { post(.timelineChanged(timeline)) }

  /// Every live session, each as the pacer sees it between two rounds.
  package func sessions() async -> [SessionSnapshot] {
    await withCheckedContinuation { continuation in
      post(.inspect { continuation.resume(returning: $0) })
    }
  }

  /// Whether it answers in time.
  func answers(withinMilliseconds limit: Int) async -> Bool {
    await withCheckedContinuation { continuation in
      let answer = OneShotCallback<Bool> { continuation.resume(returning: $0) }
      post(.ping { answer.give(true) })
      DispatchQueue.global().asyncAfter(deadline: .now() + .milliseconds(limit)) { answer.give(false) }
    }
  }

  /// Takes what has arrived. `spare` becomes the new mailbox, so that both keep their capacity.
  func takeMessages(into spare: inout [PacerMessage]) {
    mailbox.withLock { swap(&$0, &spare) }
  }

  /// Lets others have the core.
  func rest(nanoseconds: UInt64) { usleep(UInt32(nanoseconds / 1_000)) }

  /// Blocks until a message arrives, a blocked connection can be written to, or the deadline.
  ///
  /// - Parameter deadlineNanoseconds: nil for no deadline.
  func wait(until deadlineNanoseconds: UInt64?, descriptors: inout [pollfd]) {
    descriptors[0] = pollfd(fd: wakeDescriptor, events: Int16(POLLIN), revents: 0)
    var remaining: Int64 = -1
    if let deadlineNanoseconds {
      let now = MonotonicClock.nowNanoseconds
      remaining = deadlineNanoseconds > now ? Int64(deadlineNanoseconds - now) : 0
    }
    antiphon_poll(&descriptors, nfds_t(descriptors.count), remaining)
    if descriptors[0].revents != 0 {
      var count: UInt64 = 0
      _ = read(wakeDescriptor, &count, 8)
    }
  }
}
