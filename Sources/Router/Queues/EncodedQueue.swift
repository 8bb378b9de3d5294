import NIOCore

/// A queue's first page, as JSON when that is needed first: the same bytes for all who are sent it.
final class EncodedQueue {
  let view: QueueView
  private(set) lazy var json = ByteBuffer(bytes: JSON.encode(view))

  init(_ view: QueueView) {
    self.view = view
  }
}
