import Glibc
import NIOCore
import ServiceSupport
import Synchronization

/// Writes to a pipe whose reader may be slow, or gone.
final class PipeWriter: Sendable {
  /// Why nothing more can be written, other than that nobody reads.
  struct WriteError: Error, CustomStringConvertible {
    let description: String
  }

  /// What a pipe that says it has room takes without blocking (pipe(7), `PIPE_BUF`).
  private static let chunkByteCount = 4_096
  /// How often a blocked writer looks whether it is to go on.
  private static let patienceMilliseconds: Int32 = 500

  private let descriptor: Int32
  private let givesUp = Atomic<Bool>(false)

  init(descriptor: Int32) {
    // A reader that goes is an error of `write`, and not the end of the process.
    signal(SIGPIPE, SIG_IGN)
    self.descriptor = descriptor
  }

  /// A reader that takes nothing is not waited for any longer.
  func giveUpOnSlowReader() { givesUp.store(true, ordering: .relaxed) }

  /// Writes it all. Blocks its thread.
  ///
  /// - Returns: false where nobody reads any more.
  func write(_ buffer: ByteBuffer) throws(WriteError) -> Bool {
    var rest = Array(buffer.readableBytesView)[...]
    while !rest.isEmpty {
      var room = pollfd(fd: descriptor, events: Int16(POLLOUT), revents: 0)
      let ready = poll(&room, 1, Self.patienceMilliseconds)
      if ready == 0, givesUp.load(ordering: .relaxed) { return false }
      guard ready > 0 else { continue }
      let chunk = rest.prefix(Self.chunkByteCount)
      let count = chunk.withUnsafeBytes { Glibc.write(descriptor, $0.baseAddress, $0.count) }
      if count >= 0 {
        rest = rest.dropFirst(count)
      } else if errno == EPIPE {
        return false
      } else if errno != EINTR, errno != EAGAIN {
        throw WriteError(description: "standard output cannot be written: \(errorText(errno))")
      }
    }
    return true
  }
}
