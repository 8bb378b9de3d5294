import AudioEngineCore
import Glibc
import Logging
import ServiceSupport
import Synchronization
import WireProtocol

/// Decoder processes that are threads of this one: the engine's end of their sockets is the real one, and what is at
/// the other end is the caller's.
package final class PlayedDecoders: Sendable {
  /// No process has this number: to kill it does nothing, and it has used no CPU time.
  private static let noProcess = pid_t.max

  static let logger = Logger(label: "fuzz") { _ in SwiftLogNoOpLogHandler() }

  private let play: @Sendable (DecoderSocket) -> Void
  private let startedDedicated = Atomic<Int>(0)
  private let running = Atomic<Int>(0)

  /// - Parameter play: called for each process with its end of the control socket, until it returns.
  package init(_ play: @escaping @Sendable (DecoderSocket) -> Void) { self.play = play }

  /// How many were started for a suspect alone.
  package var dedicatedCount: Int { startedDedicated.load(ordering: .relaxed) }

  package func makePool() -> DecoderPool {
    DecoderPool(count: 1, logger: Self.logger) { [self] (isDedicated) throws(ErrorReport) in
      try start(isDedicated: isDedicated)
    }
  }

  private func start(isDedicated: Bool) throws(ErrorReport) -> DecoderProcess {
    let (own, other) = try DecoderSocket.pair()
    if isDedicated { startedDedicated.add(1, ordering: .relaxed) }
    running.add(1, ordering: .relaxed)
    try EngineThread.start(name: "played") { [self] in
      let control = DecoderSocket(descriptor: other, of: .decoder)
      Self.tellWalls(control)
      play(control)
      running.subtract(1, ordering: .releasing)
    }
    return DecoderProcess(id: Self.noProcess, control: own)
  }

  /// Every protection of the sandbox is applied.
  private static func tellWalls(_ control: DecoderSocket) {
    let header = DecoderSocket.Header(kind: 0, flag: 0, number: 0)
    _ = Array("[]".utf8).withUnsafeBytes { try? control.send(header, $0) }
  }

  /// Blocks until all have ended.
  package func join() {
    while running.load(ordering: .acquiring) > 0 { sched_yield() }
  }
}
