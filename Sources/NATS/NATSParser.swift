import NIOCore

/// Cuts a server's bytes into what it says: feed it bytes however they come, and take what is whole. A value without a
/// connection. It holds one line, one message at its limit, and what came with them in one read.
public struct NATSParser: Sendable {
  public enum Event: Sendable {
    /// JSON.
    case info(ByteBuffer)
    case message(NATSMessage)
    case ping
    case pong
    case ok
    case error(String)
  }

  private let limits: NATSLimits
  private var buffer = ByteBuffer()
  /// Bytes of the line at hand that hold no end of line.
  private var searchedByteCount = 0
  /// A message whose line is read and whose payload is on its way.
  private var awaited: NATSMessage.Layout?
  private var failure: NATSProtocolError?

  public init(limits: NATSLimits = NATSLimits()) { self.limits = limits }

  /// Bytes that are held and not yet taken.
  public var heldByteCount: Int { buffer.readableBytes }

  public mutating func append(_ bytes: ByteBuffer) {
    guard failure == nil else { return }
    if buffer.readableBytes == 0 {
      // The common case: everything was taken, and nothing is copied.
      buffer = bytes
    } else {
      // What was handed out keeps the old memory; what is left moves, and is all that is held from here on.
      buffer.discardReadBytes()
      buffer.writeImmutableBuffer(bytes)
    }
  }

  /// What is whole next; nil until more bytes have come. After an error there is only that error.
  public mutating func next() throws(NATSProtocolError) -> Event? {
    if let failure { throw failure }
    do {
      return try take()
    } catch {
      failure = error
      buffer = ByteBuffer()
      throw error
    }
  }

  private mutating func take() throws(NATSProtocolError) -> Event? {
    if let awaited { return try takeMessage(awaited) }
    guard let lineByteCount = try findLine() else { return nil }
    let fields = Fields(buffer.readableBytesView.prefix(lineByteCount - 2))
    guard let word = fields.word else { throw NATSProtocolError("the server sent an empty line") }
    switch word {
    case Fields.word("MSG"): return try takeMessage(layout(fields, lineByteCount, hasHeaders: false))
    case Fields.word("HMSG"): return try takeMessage(layout(fields, lineByteCount, hasHeaders: true))
    case Fields.word("PING"): return taken(.ping, lineByteCount)
    case Fields.word("PONG"): return taken(.pong, lineByteCount)
    case Fields.word("+OK"): return taken(.ok, lineByteCount)
    case Fields.word("INFO"):
      return taken(.info(rest(of: lineByteCount, after: fields)), lineByteCount)
    case Fields.word("-ERR"):
      let text = String(buffer: rest(of: lineByteCount, after: fields))
      return taken(.error(String(text.drop { $0 == "'" }.prefix { $0 != "'" }.prefix(500))), lineByteCount)
    default: throw NATSProtocolError("the server sent an unknown word")
    }
  }

  /// The bytes of the line at hand, its end included; nil while it is not whole.
  private mutating func findLine() throws(NATSProtocolError) -> Int? {
    let bytes = buffer.readableBytesView
    let unsearched = bytes.dropFirst(searchedByteCount).prefix(limits.lineByteCount - searchedByteCount)
    guard let end = unsearched.firstIndex(of: UInt8(ascii: "\n")) else {
      searchedByteCount += unsearched.count
      guard searchedByteCount < limits.lineByteCount else {
        throw NATSProtocolError("the server sent a line of more than \(limits.lineByteCount) bytes")
      }
      return nil
    }
    let count = end - bytes.startIndex + 1
    guard count >= 2, bytes[end - 1] == UInt8(ascii: "\r") else {
      throw NATSProtocolError("the server ended a line without a carriage return")
    }
    return count
  }

  private mutating func taken(_ event: Event, _ byteCount: Int) -> Event {
    buffer.moveReaderIndex(forwardBy: byteCount)
    searchedByteCount = 0
    awaited = nil
    return event
  }

  /// What stands behind the first word.
  private func rest(of lineByteCount: Int, after fields: Fields) -> ByteBuffer {
    let start = fields.count > 1 ? fields[1].lowerBound : lineByteCount - 2
    return buffer.getSlice(at: buffer.readerIndex + start, length: lineByteCount - 2 - start) ?? ByteBuffer()
  }

  /// Reads `MSG subject sid [reply] total` or `HMSG subject sid [reply] headers total`.
  private func layout(
    _ fields: Fields, _ lineByteCount: Int, hasHeaders: Bool
  ) throws(NATSProtocolError) -> NATSMessage.Layout {
    let fixed = hasHeaders ? 5 : 4
    guard fields.count == fixed || fields.count == fixed + 1,
      let subscription = fields.number(2), let total = fields.number(fields.count - 1),
      let headers = hasHeaders ? fields.number(fields.count - 2) : 0, headers <= total
    else { throw NATSProtocolError("the server sent a message whose line cannot be read") }
    guard headers <= limits.headerByteCount, total <= limits.payloadByteCount else {
      throw NATSProtocolError("the server sent a message of \(total) bytes, \(headers) of them headers")
    }
    return NATSMessage.Layout(
      subscription: subscription, subject: fields[1], reply: fields.count > fixed ? fields[3] : nil,
      lineByteCount: lineByteCount, headerByteCount: Int(headers), totalByteCount: Int(total))
  }

  private mutating func takeMessage(_ layout: NATSMessage.Layout) throws(NATSProtocolError) -> Event? {
    guard buffer.readableBytes >= layout.frameByteCount,
      let frame = buffer.getSlice(at: buffer.readerIndex, length: layout.frameByteCount)
    else {
      awaited = layout
      return nil
    }
    guard frame.readableBytesView.suffix(2).elementsEqual("\r\n".utf8) else {
      throw NATSProtocolError("the server sent a message that is longer than it says")
    }
    return taken(.message(NATSMessage(frame: frame, layout: layout)), layout.frameByteCount)
  }
}

/// The words of a line, without memory of their own.
private struct Fields {
  private static let maximumCount = 7

  private let line: ByteBufferView
  /// Words found; those beyond the most that any line has are one.
  private(set) var count = 0
  private var ranges = InlineArray<7, Range<Int>>(repeating: 0..<0)

  init(_ line: ByteBufferView) {
    self.line = line
    var start: Int?
    var offset = 0
    for byte in line {
      if byte == UInt8(ascii: " ") || byte == UInt8(ascii: "\t") {
        if let begun = start { add(begun..<offset) }
        start = nil
      } else if start == nil {
        start = offset
      }
      offset += 1
    }
    if let start { add(start..<offset) }
  }

  private mutating func add(_ range: Range<Int>) {
    guard count < Self.maximumCount else { return }
    ranges[count] = range
    count += 1
  }

  /// In bytes from the line's beginning.
  subscript(index: Int) -> Range<Int> { ranges[index] }

  /// A decimal number of at most 18 digits.
  func number(_ index: Int) -> UInt64? {
    let range = ranges[index]
    guard range.count <= 18 else { return nil }
    var number: UInt64 = 0
    for offset in range {
      let digit = line[line.startIndex + offset] &- UInt8(ascii: "0")
      guard digit <= 9 else { return nil }
      number = number * 10 + UInt64(digit)
    }
    return number
  }

  /// The first word, in capitals, as a number that is quick to compare.
  var word: UInt64? {
    guard count > 0 else { return nil }
    let range = ranges[0]
    guard range.count <= 8 else { return 0 }
    return Self.number(line.dropFirst(range.lowerBound).prefix(range.count))
  }

  static func word(_ text: StaticString) -> UInt64 {
    text.withUTF8Buffer { number($0) }
  }

  private static func number(_ bytes: some Sequence<UInt8>) -> UInt64 {
    var number: UInt64 = 0
    for byte in bytes {
      let isSmall = byte >= UInt8(ascii: "a") && byte <= UInt8(ascii: "z")
      number = number << 8 | UInt64(isSmall ? byte - 32 : byte)
    }
    return number
  }
}
