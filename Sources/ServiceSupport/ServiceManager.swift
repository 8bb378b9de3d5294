import Dispatch
import Glibc

/// The service manager that has started this process, such as systemd: it is told when the process serves, that it
/// is alive, and when it stops (sd_notify(3)). Where none asked to be told, nothing happens.
public struct ServiceManager: Sendable {
  /// The one that has started this process.
  public static let own = ServiceManager { name in getenv(name).map { String(cString: $0) } }

  /// How long one that does not read is waited for.
  private static let sendSeconds = 1
  /// After a check that failed the next one comes sooner, so that one bad moment is not the end.
  private static let recheckInterval = Duration.seconds(1)
  /// Sends in order, and keeps nobody else waiting.
  private static let queue = DispatchQueue(label: "antiphon.service-manager")

  /// How often it is to be told that the process is alive: half of what it waits. Nil where it is not to be.
  public let watchdogInterval: Duration?
  /// A datagram socket's path, or after an `@` its name without one (unix(7)); nil where nobody is told.
  private let address: String?

  /// - Parameter variable: one of the environment: `NOTIFY_SOCKET`, `WATCHDOG_USEC` and `WATCHDOG_PID`.
  public init(_ variable: (String) -> String?) {
    address = variable("NOTIFY_SOCKET").flatMap { $0.hasPrefix("/") || $0.hasPrefix("@") ? $0 : nil }
    let isForUs = variable("WATCHDOG_PID").map { Int32($0) == getpid() } ?? true
    let microseconds = variable("WATCHDOG_USEC").flatMap(Int64.init) ?? 0
    watchdogInterval = isForUs && microseconds > 1 ? .microseconds(microseconds / 2) : nil
  }

  /// The process serves from now on.
  public func ready(_ status: String) { tell("READY=1\nSTATUS=\(status)") }

  /// The process has begun to stop.
  public func stopping() { tell("STOPPING=1\nSTATUS=stopping") }

  /// Tells it that the process is alive for as long as the process is, until cancelled.
  ///
  /// - Parameter isAlive: asked before each time; where it says no, or does not answer, nothing is told, and the
  ///   manager will do what it is set to.
  public func watch(_ isAlive: @Sendable () async -> Bool) async {
    guard address != nil, let watchdogInterval else { return }
    while !Task.isCancelled {
      let wasAlive = await isAlive()
      if wasAlive { tell("WATCHDOG=1") }
      try? await Task.sleep(for: wasAlive ? watchdogInterval : min(watchdogInterval, Self.recheckInterval))
    }
  }

  private func tell(_ message: String) {
    guard let address else { return }
    Self.queue.async { Self.send(Array(message.utf8), to: address) }
  }

  /// What cannot be sent is not said: the manager that does not hear of us acts by itself.
  private static func send(_ message: [UInt8], to text: String) {
    var address = sockaddr_un()
    address.sun_family = sa_family_t(AF_UNIX)
    guard text.utf8.count < MemoryLayout.size(ofValue: address.sun_path) else { return }
    withUnsafeMutableBytes(of: &address.sun_path) { path in
      path.copyBytes(from: text.utf8)
      // A name without a path begins with a zero.
      if text.hasPrefix("@") { path[0] = 0 }
    }
    let descriptor = socket(AF_UNIX, Int32(SOCK_DGRAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0)
    guard descriptor >= 0 else { return }
    defer { close(descriptor) }
    var limit = timeval(tv_sec: sendSeconds, tv_usec: 0)
    setsockopt(descriptor, SOL_SOCKET, SO_SNDTIMEO, &limit, socklen_t(MemoryLayout<timeval>.size))
    // Without the zeros after the name, which would belong to it.
    let length = socklen_t(MemoryLayout.offset(of: \sockaddr_un.sun_path)! + text.utf8.count)
    withUnsafePointer(to: address) {
      $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        _ = sendto(descriptor, message, message.count, Int32(MSG_NOSIGNAL), $0, length)
      }
    }
  }
}
