import CLinux
import Glibc
import ServiceSupport
import WireProtocol

/// Starts a thread of our own: blocking C calls never run on Swift's cooperative pool.
package enum EngineThread {
  /// - Parameters:
  ///   - name: at most 15 bytes, as `top -H` shows it.
  ///   - stackByteCount: the address space set aside; only touched pages cost memory.
  /// - Throws: `ErrorReport` `internal` where the system refuses another thread.
  package static func start(
    name: String, stackByteCount: Int = 1 << 20, _ body: @escaping @Sendable () -> Void
  ) throws(ErrorReport) {
    var attributes = pthread_attr_t()
    pthread_attr_init(&attributes)
    defer { pthread_attr_destroy(&attributes) }
    pthread_attr_setstacksize(&attributes, stackByteCount)
    pthread_attr_setdetachstate(&attributes, Int32(PTHREAD_CREATE_DETACHED))
    let start = Unmanaged.passRetained(Start(name: name, body: body))
    var thread = pthread_t()
    let status = pthread_create(
      &thread, &attributes,
      { argument in
        // Safe: the pointer is the retained Start passed below, taken exactly once.
        let start = Unmanaged<Start>.fromOpaque(argument!).takeRetainedValue()
        antiphon_set_thread_name(start.name)
        start.body()
        return nil
      }, start.toOpaque())
    guard status == 0 else {
      start.release()
      throw ErrorReport(
        .internal, "no thread for \(name): \(errorText(status))",
        hint: "raise the process's thread limit or lower --max-workers")
    }
  }

  /// Blocks the calling thread while a condition holds, which it checks once a millisecond.
  static func wait(while condition: () -> Bool) {
    while condition() { usleep(1_000) }
  }

  /// Lets other threads go before the calling one, or no more: 0 to 19.
  ///
  /// - Returns: false where a thread without the privilege (`CAP_SYS_NICE`) was to go back to a lower one.
  @discardableResult
  package static func setNiceness(_ niceness: Int32) -> Bool { ThreadPriority.setNiceness(niceness) }

  /// The kernel's number of the calling thread.
  package static var currentID: Int32 { antiphon_thread_id() }

  /// What the calling thread has used.
  static var cpuNanoseconds: UInt64 {
    var time = timespec()
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time)
    return UInt64(time.tv_sec) * 1_000_000_000 + UInt64(time.tv_nsec)
  }

  private final class Start {
    let name: String
    let body: @Sendable () -> Void

    init(name: String, body: @escaping @Sendable () -> Void) {
      self.name = name
      self.body = body
    }
  }
}
