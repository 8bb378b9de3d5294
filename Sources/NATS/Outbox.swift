import NIOCore
import Synchronization

/// Bytes that wait to be sent, written by any thread and taken by the loop. The lock is held for a copy in memory, never
/// across a system call.
final class Outbox: Sendable {
  /// The kind of a message, which sets its byte limit.
  enum Priority {
    /// Publications: up to the limit.
    case publication
    /// Requests and subscriptions: as much again.
    case control
  }

  enum WriteResult {
    /// `mustFlush` is true for the first write since the loop last took the pending bytes; that writer schedules a flush.
    case accepted(connection: UInt64, mustFlush: Bool)
    case full
    case notConnected
    case tooLarge(limit: Int)
  }

  private struct State {
    /// Which connection this is since the start; 0 is none.
    var connection: UInt64 = 0
    var isOpen = false
    var maximumPayload = 0
    var pending = ByteBuffer()
    /// Bytes that the socket has not yet taken.
    var unsent = 0
    var isFlushRequested = false
  }

  private let limit: Int
  private let state = Mutex(State())

  init(limit: Int) { self.limit = limit }

  /// Bytes that wait here and in the channel.
  var byteCount: Int { state.withLock { $0.pending.readableBytes + $0.unsent } }
  var isOpen: Bool { state.withLock { $0.isOpen } }

  /// Appends one frame.
  ///
  /// - Parameters:
  ///   - byteCount: at least what `write` writes.
  ///   - payloadByteCount: headers and payload, which the server limits.
  func write(
    _ priority: Priority, byteCount: Int, payloadByteCount: Int = 0, _ write: (inout ByteBuffer) -> Void
  ) -> WriteResult {
    state.withLock { state in
      guard state.isOpen else { return .notConnected }
      guard payloadByteCount <= state.maximumPayload else { return .tooLarge(limit: state.maximumPayload) }
      let limit = priority == .publication ? limit : 2 * limit
      guard state.pending.readableBytes + state.unsent + byteCount <= limit else { return .full }
      write(&state.pending)
      defer { state.isFlushRequested = true }
      return .accepted(connection: state.connection, mustFlush: !state.isFlushRequested)
    }
  }

  /// Takes the pending bytes. They count until `sent`.
  func take() -> (bytes: ByteBuffer, connection: UInt64)? {
    state.withLock { state in
      state.isFlushRequested = false
      let count = state.pending.readableBytes
      guard state.isOpen, count > 0 else { return nil }
      let bytes = state.pending
      // As large as what there just was: the next ones are written without growing.
      state.pending = ByteBufferAllocator().buffer(capacity: min(max(count, 4 << 10), 256 << 10))
      state.unsent += count
      return (bytes, state.connection)
    }
  }

  /// The socket has taken bytes, or never will.
  func sent(_ byteCount: Int, connection: UInt64) {
    state.withLock { state in
      if state.connection == connection { state.unsent -= byteCount }
    }
  }

  /// A connection is established.
  func open(connection: UInt64, maximumPayload: Int) {
    state.withLock {
      $0 = State(connection: connection, isOpen: true, maximumPayload: maximumPayload)
    }
  }

  /// The connection is lost, and the pending bytes with it.
  func close() {
    state.withLock { $0 = State(connection: $0.connection) }
  }
}
