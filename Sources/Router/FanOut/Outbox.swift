import Collections
import NIOCore

/// What waits for one listener that does not keep up, in order. Bounded: past 2 s the listener loses its
/// own oldest audio; its text is never lost.
package struct Outbox {
  package enum Item {
    /// `part` is of what it adds to what waits for its client: of shared bytes its part.
    case audio(ByteBuffer, part: Int)
    case text(TextMessage)
  }

  private var items: Deque<Item> = []
  package private(set) var audioCount = 0
  package private(set) var textCount = 0
  package private(set) var byteCount = 0
  package private(set) var audioPartByteCount = 0
  package private(set) var textByteCount = 0

  private let maximumAudioCount: Int

  package init(maximumAudioCount: Int = RouterLimits.outboxAudioFrameCount) {
    self.maximumAudioCount = maximumAudioCount
  }

  package var isEmpty: Bool { items.isEmpty }

  /// Keeps one audio frame.
  ///
  /// - Parameters:
  ///   - part: what it adds to what waits for its client.
  ///   - hasRoom: whether the client may have so much waiting; where not, the oldest makes room.
  /// - Returns: whether the oldest was dropped for it.
  package mutating func appendAudio(_ frame: ByteBuffer, part: Int = 0, hasRoom: Bool = true) -> Bool {
    let isFull = audioCount == maximumAudioCount || (!hasRoom && audioCount > 0)
    if isFull { removeOldestAudio() }
    items.append(.audio(frame, part: part))
    audioCount += 1
    byteCount += frame.readableBytes
    audioPartByteCount += part
    return isFull
  }

  /// Keeps one text message.
  ///
  /// - Returns: false where the limit is reached and the connection cannot be kept.
  package mutating func appendText(_ message: TextMessage) -> Bool {
    let textByteCount = textByteCount + message.byteCount
    // One message may be larger than all that may wait behind it.
    guard textCount < RouterLimits.outboxTextFrameCount,
      textCount == 0 || textByteCount <= RouterLimits.outboxTextByteCount
    else { return false }
    self.textByteCount = textByteCount
    items.append(.text(message))
    textCount += 1
    byteCount += message.byteCount
    return true
  }

  /// The next to write, nil when there is none.
  package mutating func popFirst() -> Item? {
    let item = items.popFirst()
    switch item {
    case .audio(let frame, let part): subtract(frame, part)
    case .text(let message):
      textCount -= 1
      textByteCount -= message.byteCount
      byteCount -= message.byteCount
    case nil: break
    }
    return item
  }

  package mutating func removeAll() {
    self = Outbox(maximumAudioCount: maximumAudioCount)
  }

  private mutating func removeOldestAudio() {
    for (index, item) in items.enumerated() {
      guard case .audio(let frame, let part) = item else { continue }
      items.remove(at: index)
      subtract(frame, part)
      return
    }
  }

  private mutating func subtract(_ frame: ByteBuffer, _ part: Int) {
    audioCount -= 1
    byteCount -= frame.readableBytes
    audioPartByteCount -= part
  }
}
