import CLinux
import Glibc
import ServiceSupport
import WireProtocol

/// One end of the conversation about one production, between the engine and a decoder process: whole messages, in
/// order, with descriptors (unix(7), `SOCK_SEQPACKET`). Used by one thread.
package final class DecoderSocket {
  /// The other end has gone.
  package struct Gone: Error {
    /// Or it does not read what it is told.
    var hasSendTimedOut = false
  }

  /// What every message begins with.
  package struct Header {
    package var kind: UInt32
    /// 0, or another meaning of the kind's own.
    package var flag: UInt32
    package var number: Int64

    package init(kind: UInt32, flag: UInt32, number: Int64) {
      self.kind = kind
      self.flag = flag
      self.number = number
    }

    static let byteCount = MemoryLayout<Header>.size
  }

  package struct Message {
    package var header: Header
    /// Valid until the next message is received.
    package var payload: UnsafeRawBufferPointer
    /// The receiver's to close; nil where none came with it.
    package var descriptor: Int32?
  }

  /// As much as libavformat reads at once.
  package static let maximumPayloadByteCount = 32_768

  /// Which process has this end.
  package enum Side {
    /// Takes no descriptors, and never waits for room: an honest decoder has read all that it was told before.
    case engine
    case decoder
  }

  private let descriptor: Int32
  private let side: Side
  // Safe: allocated in `init`, used by the one thread that uses the socket, freed in `deinit`.
  private let buffer = UnsafeMutableRawBufferPointer.allocate(
    byteCount: Header.byteCount + maximumPayloadByteCount, alignment: 16)

  /// Takes the descriptor over.
  package init(descriptor: Int32, of side: Side) {
    self.descriptor = descriptor
    self.side = side
  }

  deinit {
    close(descriptor)
    buffer.deallocate()
  }

  /// Two ends, which programs that are started do not get.
  package static func pair() throws(ErrorReport) -> (Int32, Int32) {
    var ends: [Int32] = [-1, -1]
    let type = Int32(SOCK_SEQPACKET.rawValue | SOCK_CLOEXEC.rawValue)
    guard socketpair(AF_UNIX, type, 0, &ends) == 0 else {
      throw ErrorReport(.internal, "no socket for a decoder: \(errorText(errno))", stage: .probe)
    }
    return (ends[0], ends[1])
  }

  /// Blocks, at a decoder's end, while the engine has much to take still.
  package func send(
    _ header: Header, _ payload: UnsafeRawBufferPointer = UnsafeRawBufferPointer(start: nil, count: 0),
    passing passed: Int32? = nil
  ) throws(Gone) {
    let status = withUnsafeBytes(of: header) { bytes in
      antiphon_send_message(
        descriptor, bytes.baseAddress, bytes.count, payload.baseAddress, payload.count, passed ?? -1,
        side == .decoder)
    }
    guard status == 0 else { throw Gone(hasSendTimedOut: errno == EAGAIN) }
  }

  /// Blocks until there is a message.
  package func receive() throws(Gone) -> Message {
    var passed: Int32 = -1
    let count =
      switch side {
      case .engine: antiphon_receive_message(descriptor, buffer.baseAddress, buffer.count, nil)
      case .decoder: antiphon_receive_message(descriptor, buffer.baseAddress, buffer.count, &passed)
      }
    guard count >= Header.byteCount else { throw Gone() }
    return Message(
      header: buffer.load(as: Header.self),
      payload: UnsafeRawBufferPointer(rebasing: buffer[Header.byteCount..<count]),
      descriptor: passed < 0 ? nil : passed)
  }

  /// Whether there is a message, or the end of them, within a time.
  func wait(milliseconds: Int32) -> Bool {
    var poll = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
    return Glibc.poll(&poll, 1, milliseconds) > 0
  }

  /// Whether the other end has gone.
  var isGone: Bool { antiphon_is_hung_up(descriptor) }
}
