import Dispatch
import Logging
import Synchronization
import WireProtocol

/// Logs what was refused, or went wrong for one session: the first at once, and of those that follow within a second
/// the last one and how many they were, so that nobody fills the disk by sending nonsense.
public final class RequestErrorLog: Sendable {
  private struct State {
    /// A second is running in which nothing is logged.
    var isWaiting = false
    var heldBack = 0
    var last: (report: ErrorReport, sessionID: SessionID?)?
    var total = 0
  }

  private static let interval = DispatchTimeInterval.seconds(1)

  private let logger: Logger
  private let subject: String
  private let state = Mutex(State())

  /// - Parameter subject: what is logged, in the singular.
  public init(logger: Logger, subject: String = "refused command") {
    self.logger = logger
    self.subject = subject
  }

  /// Since the process started.
  public var total: Int { state.withLock { $0.total } }

  public func note(_ report: ErrorReport, sessionID: SessionID?) {
    let isFirst = state.withLock { state in
      state.total += 1
      guard state.isWaiting else {
        state.isWaiting = true
        return true
      }
      state.heldBack += 1
      state.last = (report, sessionID)
      return false
    }
    guard isFirst else { return }
    write(subject, report, sessionID)
    waitASecond()
  }

  private func waitASecond() {
    DispatchQueue.global().asyncAfter(deadline: .now() + Self.interval) { [self] in
      let (count, last) = state.withLock { state in
        defer {
          state.heldBack = 0
          state.last = nil
        }
        state.isWaiting = state.heldBack > 0
        return (state.heldBack, state.last)
      }
      guard let last else { return }
      write("\(subject), the last of \(count) more within a second", last.report, last.sessionID)
      waitASecond()
    }
  }

  /// What a client sent is shown escaped and not at length.
  private func write(_ what: String, _ report: ErrorReport, _ sessionID: SessionID?) {
    let words = String(report.description.prefix(300)).debugDescription
    logger.warning("\(what): \(words)", metadata: sessionID.map { ["session": "\($0)"] })
  }
}
