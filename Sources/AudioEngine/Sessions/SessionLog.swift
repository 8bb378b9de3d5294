import Dispatch
import Logging
import ServiceSupport
import Synchronization
import WireProtocol

/// What is logged of a session.
package enum SessionChange: Sendable {
  case began(url: String)
  case ended(EngineEvent.EndReason, Diagnosis.Sent)
}

/// A line for each session's beginning and end. Past as many in a minute as nobody reads, those that follow are one
/// line with their number: sessions that come and go in a flood do not fill the disk.
package final class SessionLog: Sendable {
  private struct State {
    var count = 0
    var heldBack = 0
  }

  package static let linesPerMinute = 1_000

  private let logger: Logger
  private let interval: DispatchTimeInterval
  private let state = Mutex(State())

  /// - Parameter interval: other than a minute, so that a test need not wait.
  package init(logger: Logger, interval: DispatchTimeInterval = .seconds(60)) {
    self.logger = logger
    self.interval = interval
  }

  package func note(_ change: SessionChange, of id: SessionID) {
    let (isFirst, hasRoom) = state.withLock { state in
      state.count += 1
      if state.count > Self.linesPerMinute { state.heldBack += 1 }
      return (state.count == 1, state.heldBack == 0)
    }
    if isFirst { DispatchQueue.global().asyncAfter(deadline: .now() + interval) { [self] in endInterval() } }
    if hasRoom { logger.info("\(change.words)", metadata: ["session": "\(id)"]) }
  }

  private func endInterval() {
    let heldBack = state.withLock { state in
      defer { state = State() }
      return state.heldBack
    }
    if heldBack > 0 { logger.info("\(heldBack) more session starts and ends not logged") }
  }
}

extension SessionChange {
  fileprivate var words: String {
    switch self {
    case .began(let url): return "begins \(Self.withoutKeys(url))"
    case .ended(let reason, let sent):
      let what =
        switch reason {
        case .replaced: "replaced by another track"
        case .moved: "handed over to another engine"
        default: "ended (\(reason.rawValue))"
        }
      return "\(what): \(sent.packets) packets, \(sent.bytes) bytes"
    }
  }

  /// A name and a password may stand before the host, and a key behind the question mark.
  private static func withoutKeys(_ url: String) -> String {
    let address = url.prefix { $0 != "?" }
    guard let scheme = address.firstRange(of: "://") else { return String(address) }
    let host = address[scheme.upperBound...].prefix { $0 != "/" }
    guard let keys = host.lastIndex(of: "@") else { return String(address) }
    return String(address[..<scheme.upperBound] + address[address.index(after: keys)...])
  }
}
