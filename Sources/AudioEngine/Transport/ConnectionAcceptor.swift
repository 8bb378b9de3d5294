import Glibc
import Logging
import ServiceSupport
import Synchronization

/// Takes the connections of a listening socket until it is told to stop, whatever goes wrong in between: an engine
/// that takes none plays to nobody.
package final class ConnectionAcceptor: Sendable {
  /// Before it is tried again, and said again why it could not be.
  private static let retryMicroseconds: UInt32 = 1_000_000

  private let descriptor: Int32
  private let logger: Logger
  private let isStopped = Atomic<Bool>(false)

  /// Takes the descriptor over.
  package init(descriptor: Int32, logger: Logger) {
    self.descriptor = descriptor
    self.logger = logger
  }

  deinit { close(descriptor) }

  /// Blocks its thread until `stop`.
  ///
  /// - Parameter admit: takes over the descriptor of each connection.
  package func run(_ admit: (Int32) -> Void) {
    while !isStopped.load(ordering: .acquiring) {
      let accepted = accept(descriptor, nil, nil)
      if accepted >= 0 { admit(accepted) } else { failed(errno) }
    }
  }

  /// Takes no more.
  package func stop() {
    isStopped.store(true, ordering: .releasing)
    // Wakes the thread that waits for one.
    shutdown(descriptor, Int32(SHUT_RDWR))
  }

  private func failed(_ code: Int32) {
    switch code {
    case EINTR, ECONNABORTED: return
    case _ where isStopped.load(ordering: .acquiring): return
    case EMFILE, ENFILE: logger.error("no descriptor for another router: raise the limit of open files")
    default: logger.error("a router cannot be taken: \(errorText(code)); it is tried again every second")
    }
    usleep(Self.retryMicroseconds)
  }
}
