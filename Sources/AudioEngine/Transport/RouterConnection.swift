import CLinux
import Glibc
import Synchronization
import WireProtocol

/// One router's connection: the pacer writes to it, its own thread reads commands from it.
package final class RouterConnection: Sendable {
  package struct ID: Hashable, Sendable {
    let number: UInt64

    package init(number: UInt64) { self.number = number }

    func isLater(than other: ID) -> Bool { number > other.number }
  }

  private static let lastNumber = Atomic<UInt64>(0)
  private static let sendFlags = Int32(Glibc.MSG_DONTWAIT) | Int32(Glibc.MSG_NOSIGNAL)
  private static let readByteCount = 16_384

  package let id: ID
  let descriptor: Int32
  private let isBehind = Atomic<Bool>(false)

  /// Takes the descriptor over.
  ///
  /// - Parameter bufferByteCount: of the kernel's buffers, each way.
  init(descriptor: Int32, bufferByteCount: Int) {
    self.descriptor = descriptor
    id = ID(number: Self.lastNumber.add(1, ordering: .relaxed).newValue)
    var size = Int32(bufferByteCount)
    for option in [SO_SNDBUF, SO_RCVBUF] {
      setsockopt(descriptor, SOL_SOCKET, option, &size, socklen_t(MemoryLayout<Int32>.size))
    }
  }

  deinit { close(descriptor) }

  /// Hands bytes to the socket without blocking.
  ///
  /// - Returns: how many were taken, or nil when the connection is gone.
  func write(_ bytes: UnsafeRawBufferPointer) -> Int? {
    while true {
      let count = send(descriptor, bytes.baseAddress, bytes.count, Self.sendFlags)
      if count >= 0 { return count }
      switch errno {
      case EINTR: continue
      case EAGAIN, EWOULDBLOCK: return 0
      default: return nil
      }
    }
  }

  /// Ends the connection: the reading thread sees its end, and the descriptor closes with the last holder.
  func disconnect() {
    shutdown(descriptor, Int32(SHUT_RDWR))
    setBehind(false)
  }

  /// - Parameter isBehind: whether more answers wait for the router than it is to have unread.
  func setBehind(_ isBehind: Bool) { self.isBehind.store(isBehind, ordering: .relaxed) }

  /// Blocks the thread that reads its commands while it does not read its answers: it waits in its own socket.
  func waitUntilRead() {
    EngineThread.wait { isBehind.load(ordering: .relaxed) }
  }

  /// Reads command lines until the connection ends. Blocks its thread.
  func readLines(_ line: (LineDecoder.Line) -> Void) {
    var decoder = LineDecoder()
    var buffer = [UInt8](repeating: 0, count: Self.readByteCount)
    var readable = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
    while true {
      // Waiting in `poll` and not in `recv`: a Unix socket wakes a thread that blocks in `recv` also when its peer
      // has read something, which is with every packet.
      guard poll(&readable, 1, -1) >= 0 || errno == EINTR else { return }
      let count = recv(descriptor, &buffer, buffer.count, 0)
      if count < 0, errno == EINTR { continue }
      guard count > 0 else { return }
      decoder.append(buffer[..<count], line: line)
    }
  }
}
