import CLinux
import Glibc
import WireProtocol

/// One end of the conversation about one production, between the engine and a decoder process: whole messages, in
/// order, with descriptors (unix(7), `SOCK_SEQPACKET`). Used by one thread.
final class DecoderSocket {
  /// The other end has gone.
  struct Gone: Error {}

  /// What every message begins with.
  struct Header {
    var kind: UInt32
    /// 0, or another meaning of the kind's own.
    var flag: UInt32
    var number: Int64

    static let byteCount = MemoryLayout<Header>.size
  }

  struct Message {
    var header: Header
    /// Valid until the next message is received.
    var payload: UnsafeRawBufferPointer
    /// The receiver's to close; nil where none came with it.
    var descriptor: Int32?
  }

  /// As much as libavformat reads at once.
  static let maximumPayloadByteCount = 32_768

  private let descriptor: Int32
  /// The engine takes none from a decoder.
  private let takesDescriptors: Bool
  // Safe: allocated in `init`, used by the one thread that uses the socket, freed in `deinit`.
  private let buffer = UnsafeMutableRawBufferPointer.allocate(
    byteCount: Header.byteCount + maximumPayloadByteCount, alignment: 16)

  /// Takes the descriptor over.
  init(descriptor: Int32, takesDescriptors: Bool) {
    self.descriptor = descriptor
    self.takesDescriptors = takesDescriptors
  }

  deinit {
    close(descriptor)
    buffer.deallocate()
  }

  /// Two ends, which programs that are started do not get.
  static func pair() throws(ErrorReport) -> (Int32, Int32) {
    var ends: [Int32] = [-1, -1]
    let type = Int32(SOCK_SEQPACKET.rawValue | SOCK_CLOEXEC.rawValue)
    guard socketpair(AF_UNIX, type, 0, &ends) == 0 else {
      throw ErrorReport(.internal, "no socket for a decoder: \(errorText(errno))", stage: .probe)
    }
    return (ends[0], ends[1])
  }

  /// Blocks while the other end has much to take still.
  func send(
    _ header: Header, _ payload: UnsafeRawBufferPointer = UnsafeRawBufferPointer(start: nil, count: 0),
    passing passed: Int32? = nil
  ) throws(Gone) {
    let status = withUnsafeBytes(of: header) { bytes in
      antiphon_send_message(
        descriptor, bytes.baseAddress, bytes.count, payload.baseAddress, payload.count, passed ?? -1)
    }
    guard status == 0 else { throw Gone() }
  }

  /// Blocks until there is a message.
  func receive() throws(Gone) -> Message {
    var passed: Int32 = -1
    let count = antiphon_receive_message(descriptor, buffer.baseAddress, buffer.count, &passed)
    guard count >= Header.byteCount else { throw Gone() }
    if passed >= 0, !takesDescriptors { close(passed) }
    return Message(
      header: buffer.load(as: Header.self),
      payload: UnsafeRawBufferPointer(rebasing: buffer[Header.byteCount..<count]),
      descriptor: passed < 0 || !takesDescriptors ? nil : passed)
  }

  /// Whether there is a message, or the end of them, within a time.
  func wait(milliseconds: Int32) -> Bool {
    var poll = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
    return Glibc.poll(&poll, 1, milliseconds) > 0
  }

  /// Whether the other end has gone.
  var isGone: Bool { antiphon_is_hung_up(descriptor) }
}
