/// A NATS message that carries the wire protocol's bytes between one router and one engine.
///
/// Both number what they send within an *attachment*, which is what a connection is over the Unix socket. NATS may lose a
/// message, and says nothing then: a gap in the numbers ends the attachment, and the router makes another.
public struct ClusterFrame: Sendable, Equatable {
  public enum Kind: UInt8, Sendable {
    /// The next bytes of the stream.
    case data = 1
    /// Nothing happens. It shows that the sender is there, and whether the last message was lost.
    case idle = 2
    /// The attachment is over.
    case close = 3
  }

  public var kind: Kind
  /// Chosen at random by the router.
  public var attachment: UInt64
  /// From 0 on, by one, for each direction.
  public var number: UInt64

  public static let headerByteCount = 17
  /// The stream's bytes in one frame.
  public static let maximumByteCount = 65_536

  public init(_ kind: Kind, attachment: UInt64, number: UInt64) {
    self.kind = kind
    self.attachment = attachment
    self.number = number
  }

  /// Reads what stands before the stream's bytes.
  ///
  /// - Returns: nil where it is no frame.
  public init?(header bytes: some Sequence<UInt8>) {
    var iterator = bytes.makeIterator()
    func integer() -> UInt64? {
      var value: UInt64 = 0
      for _ in 0..<8 {
        guard let byte = iterator.next() else { return nil }
        value = value << 8 | UInt64(byte)
      }
      return value
    }
    guard let kind = iterator.next().flatMap(Kind.init(rawValue:)), let attachment = integer(),
      let number = integer()
    else { return nil }
    self.init(kind, attachment: attachment, number: number)
  }

  /// What stands before the stream's bytes: the kind in one byte, attachment and number in eight each, big-endian.
  public var header: [UInt8] {
    func bytes(_ value: UInt64) -> [UInt8] {
      (0..<8).map { UInt8(truncatingIfNeeded: value >> (56 - 8 * UInt64($0))) }
    }
    return [kind.rawValue] + bytes(attachment) + bytes(number)
  }
}

/// One side of an attachment: numbers what it sends, and checks the numbers of what comes.
public struct ClusterAttachment: Sendable, Equatable {
  /// What a frame is to the attachment.
  public enum Verdict: Sendable, Equatable {
    case inOrder
    /// Of another attachment.
    case foreign
    /// A frame before it was lost.
    case gap
  }

  public let number: UInt64
  private var sent: UInt64 = 0
  private var received: UInt64 = 0

  public init(number: UInt64) { self.number = number }

  public mutating func next(_ kind: ClusterFrame.Kind) -> ClusterFrame {
    defer { sent += 1 }
    return ClusterFrame(kind, attachment: number, number: sent)
  }

  /// Takes a frame of the other side.
  public mutating func take(_ frame: ClusterFrame) -> Verdict {
    guard frame.attachment == number else { return .foreign }
    // One side's end needs no order.
    if frame.kind == .close { return .inOrder }
    guard frame.number == received else { return .gap }
    received += 1
    return .inOrder
  }
}
