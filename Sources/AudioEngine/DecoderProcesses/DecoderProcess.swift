import CLinux
import Glibc
import ServiceSupport
import Synchronization
import WireProtocol

/// One decoder process, seen from the engine.
package final class DecoderProcess: Sendable {
  let life: ProcessLife
  var id: pid_t { life.id }
  /// As long as its life is watched, nothing else has the same.
  var key: ObjectIdentifier { ObjectIdentifier(life) }
  let startedNanoseconds = MonotonicClock.nowNanoseconds
  /// What it says of itself at its start.
  let report: DecoderReport
  private let control: Int32

  /// Takes the control socket's descriptor over.
  package init(id: pid_t, control: Int32) {
    life = ProcessLife(id: id)
    report = DecoderReport(descriptor: fcntl(control, F_DUPFD_CLOEXEC, 0))
    self.control = control
  }

  /// What is at its end leaves when its control socket is closed.
  deinit { close(control) }

  /// Starts one: this executable once more, with nothing of the engine's environment and descriptors.
  ///
  /// - Parameter isDedicated: it is for one production that may have been why another process died.
  package static func start(isDedicated: Bool) throws(ErrorReport) -> DecoderProcess {
    let (own, child) = try DecoderSocket.pair()
    defer { close(child) }
    var actions = posix_spawn_file_actions_t()
    posix_spawn_file_actions_init(&actions)
    defer { posix_spawn_file_actions_destroy(&actions) }
    posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0)
    posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0)
    posix_spawn_file_actions_adddup2(&actions, child, DecoderProcessMain.controlDescriptor)
    posix_spawn_file_actions_addclosefrom_np(&actions, DecoderProcessMain.controlDescriptor + 1)
    var attributes = posix_spawnattr_t()
    posix_spawnattr_init(&attributes)
    defer { posix_spawnattr_destroy(&attributes) }
    // The engine's threads block signals; a terminal's Ctrl-C is for the engine.
    var none = sigset_t()
    sigemptyset(&none)
    posix_spawnattr_setsigmask(&attributes, &none)
    posix_spawnattr_setpgroup(&attributes, 0)
    posix_spawnattr_setflags(&attributes, Int16(POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETPGROUP))
    var id = pid_t()
    var arguments: [UnsafeMutablePointer<CChar>?] = [
      strdup("AudioEngine"), strdup(DecoderProcessMain.argument),
      // Only for those who list processes.
      isDedicated ? strdup("dedicated") : nil, nil,
    ]
    defer { for argument in arguments { free(argument) } }
    var environment: [UnsafeMutablePointer<CChar>?] = [nil]
    let status = posix_spawn(&id, "/proc/self/exe", &actions, &attributes, &arguments, &environment)
    guard status == 0 else {
      close(own)
      throw ErrorReport(
        .internal, "no decoder process can be started: \(errorText(status))",
        hint: "raise the limit of processes (TasksMax, ulimit -u)", stage: .probe)
    }
    return DecoderProcess(id: id, control: own)
  }

  /// Hands it a production's socket.
  ///
  /// - Returns: false where it has died, or has not taken many that it was given before.
  func take(_ descriptor: Int32) -> Bool {
    var byte: UInt8 = 0
    let header = DecoderSocket.Header(kind: 0, flag: 0, number: 0)
    return withUnsafeBytes(of: header) { header in
      antiphon_send_message(control, header.baseAddress, header.count, &byte, 0, descriptor, false) == 0
    }
  }

  /// Whether a thread is one of its own.
  package func hasThread(_ id: Int32) -> Bool { antiphon_is_thread(id, life.id) }

  func kill() { life.kill() }
}

/// What a decoder process says when it has entered its sandbox.
final class DecoderReport: Sendable {
  private let descriptor: Int32

  /// Takes the descriptor over.
  fileprivate init(descriptor: Int32) { self.descriptor = descriptor }

  /// Blocks until it is said. Called once.
  ///
  /// - Returns: the protections that the kernel did not apply, and why; none where the process has died.
  func unenforcedProtections() -> [String] {
    let socket = DecoderSocket(descriptor: descriptor, of: .engine)
    guard let message = try? socket.receive() else { return [] }
    return (try? socket.decode(message) as [String])?.prefix(DecoderSandbox.Part.allCases.count)
      .map { String($0.prefix(200)) } ?? []
  }
}

/// A child process until it is reaped (waitpid): until then its PID is not reused.
final class ProcessLife: Sendable {
  let id: pid_t
  private let hasEnded = Mutex(false)

  init(id: pid_t) { self.id = id }

  /// What all of its threads have used; 0 once it has ended.
  var cpuNanoseconds: UInt64 {
    var clock = clockid_t()
    var time = timespec()
    guard clock_getcpuclockid(id, &clock) == 0, clock_gettime(clock, &time) == 0 else { return 0 }
    return UInt64(time.tv_sec) * 1_000_000_000 + UInt64(time.tv_nsec)
  }

  func kill() {
    hasEnded.withLock { hasEnded in
      if !hasEnded { _ = Glibc.kill(id, SIGKILL) }
    }
  }

  /// Blocks until it has ended.
  ///
  /// - Returns: how, in words; nil where it left by itself.
  func awaitEnd() -> String? {
    var information = siginfo_t()
    while waitid(P_PID, id_t(id), &information, WEXITED | WNOWAIT) < 0, errno == EINTR {}
    var status: Int32 = 0
    hasEnded.withLock { hasEnded in
      hasEnded = true
      while waitpid(id, &status, 0) < 0, errno == EINTR {}
    }
    let signal = status & 0x7F
    if signal != 0 { return "by signal \(signal) (\(String(cString: strsignal(signal))))" }
    let code = status >> 8 & 0xFF
    return code == 0 ? nil : "with status \(code)"
  }
}
