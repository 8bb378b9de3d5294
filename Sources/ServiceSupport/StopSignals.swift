import Dispatch
import Glibc
import Logging
import Synchronization

/// SIGTERM and SIGINT, alike in both processes: the first begins the end, further ones change nothing, and the
/// process is gone within 5 s, or so long after it has drained, whatever hangs.
public enum StopSignals {
  /// For those who ask `/ready`, or are told that it ends, before connections are closed.
  public static let drainMilliseconds = 200
  /// For clients to be answered and to close their side; then they are left.
  public static let graceSeconds = 3
  /// What still hangs then is not waited for: Docker, systemd and `deploy/run` kill after 10 s and more.
  private static let mostMilliseconds = 4_500

  /// From here on the signals end nothing by themselves: the first one has this done.
  ///
  /// - Parameter drainSeconds: what it may take beside, since it serves on meanwhile.
  public static func atFirst(
    logger: Logger, drainSeconds: Int = 0, _ stop: @escaping @Sendable () async -> Void
  ) {
    let queue = DispatchQueue(label: "antiphon.signals")
    let isStopping = Atomic<Bool>(false)
    for number in [SIGTERM, SIGINT] {
      signal(number, SIG_IGN)
      let source = DispatchSource.makeSignalSource(signal: number, queue: queue)
      source.setEventHandler {
        // Held by its own handler for as long as the process runs.
        withExtendedLifetime(source) {}
        guard !isStopping.exchange(true, ordering: .relaxed) else { return }
        logger.info("stopping")
        ServiceManager.own.stopping()
        endInTime(mostMilliseconds + drainSeconds * 1_000, logger)
        Task { await stop() }
      }
      source.activate()
    }
  }

  private static func endInTime(_ milliseconds: Int, _ logger: Logger) {
    DispatchQueue.global().asyncAfter(deadline: .now() + .milliseconds(milliseconds)) {
      logger.critical("could not stop in \(milliseconds) ms: ending without waiting for what hangs")
      _exit(EXIT_FAILURE)
    }
  }
}
