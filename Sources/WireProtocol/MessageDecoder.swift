/// Reads the engine's stream: audio packets and events, in any chunking.
///
/// Bytes are appended as they arrive and messages taken while there are whole ones. A message is a slice
/// of the decoder's own buffer: nothing is allocated per packet. Let go of a slice before the next
/// `append`, or that append copies the buffer.
public struct MessageDecoder: Sendable {
  /// One message of the stream.
  public enum Message: Equatable, Sendable {
    /// One Opus packet of a session.
    case audio(SessionID, ArraySlice<UInt8>)
    /// One event's JSON object, without its newline.
    case event(ArraySlice<UInt8>)
  }

  /// The same as places in the decoder's buffer, which cost no reference counting: until the next `append`.
  public enum Place: Sendable {
    /// The whole packet, its header included.
    case audio(SessionID, Range<Int>)
    case event(Range<Int>)
  }

  /// The stream is not the protocol: what was seen, and at which byte since the connection began.
  public struct ProtocolError: Error, Equatable, CustomStringConvertible {
    public var description: String
  }

  private var buffer: [UInt8] = []
  /// Index in `buffer` of the first byte not yet taken.
  private var head = 0
  /// How far an unfinished event has been searched for its newline, so that no byte is searched twice.
  private var searched = 0
  /// Bytes of the stream before `buffer[0]`.
  private var discarded: UInt64 = 0
  private var failure: ProtocolError?

  public init() {}

  /// Takes what has arrived.
  public mutating func append(_ bytes: some Collection<UInt8>) {
    if head > 0 {
      discarded += UInt64(head)
      buffer.removeFirst(head)
      searched -= head
      head = 0
    }
    buffer.append(contentsOf: bytes)
  }

  /// The next whole message, or nil until more bytes arrive.
  ///
  /// - Throws: `ProtocolError`, and the same error from then on: the reader closes, and never guesses
  ///   where the next message begins.
  public mutating func next() throws(ProtocolError) -> Message? {
    switch try nextPlace() {
    case .audio(let id, let packet): .audio(id, buffer[packet].dropFirst(WireLimits.packetHeaderByteCount))
    case .event(let json): .event(buffer[json])
    case nil: nil
    }
  }

  /// The bytes of an event that `nextPlace` has found.
  public func event(at place: Range<Int>) -> ArraySlice<UInt8> { buffer[place] }

  /// Lends the bytes that the places of `nextPlace` are in, until the next `append`. Those of packets are the borrower's to
  /// overwrite: the decoder does not look at them again.
  public mutating func withBytes(_ body: (UnsafeMutableRawBufferPointer) -> Void) {
    buffer.withUnsafeMutableBytes { body($0) }
  }

  /// The same as `next`.
  public mutating func nextPlace() throws(ProtocolError) -> Place? {
    if let failure { throw failure }
    guard head < buffer.count else { return nil }
    switch buffer[head] {
    case 0x00: return try nextAudio()
    case UInt8(ascii: "{"): return try nextEvent()
    case let byte:
      let hexadecimal = String(byte, radix: 16)
      throw fail("a message begins with 0x\(hexadecimal), neither a packet (0x00) nor an event ({)")
    }
  }

  private mutating func nextAudio() throws(ProtocolError) -> Place? {
    let waiting = buffer.count - head
    guard waiting >= 4 else { return nil }
    let length = buffer.withUnsafeBytes {
      Int(UInt32(bigEndian: $0.loadUnaligned(fromByteOffset: head, as: UInt32.self)))
    }
    guard WireLimits.packetLengthRange.contains(length) else {
      let range = WireLimits.packetLengthRange
      throw fail("a packet's length is \(length), not \(range.lowerBound) to \(range.upperBound)")
    }
    guard waiting >= WireLimits.packetHeaderByteCount else { return nil }
    let idPlace = head + 4..<head + WireLimits.packetHeaderByteCount
    guard
      let id = buffer.withUnsafeBytes({ SessionID(padded: UnsafeRawBufferPointer(rebasing: $0[idPlace])) })
    else { throw fail("a packet's session ID is \(Array(buffer[idPlace])), not a padded name") }
    guard waiting >= 4 + length else { return nil }
    let start = head
    take(through: start + 4 + length)
    return .audio(id, start..<head)
  }

  private mutating func nextEvent() throws(ProtocolError) -> Place? {
    let start = head
    guard let newline = buffer[max(searched, head)...].firstIndex(of: UInt8(ascii: "\n")) else {
      searched = buffer.count
      guard buffer.count - head <= WireLimits.maximumEventByteCount else { throw tooLong() }
      return nil
    }
    guard newline - start <= WireLimits.maximumEventByteCount else { throw tooLong() }
    take(through: newline + 1)
    return .event(start..<newline)
  }

  private mutating func take(through end: Int) {
    head = end
    searched = end
  }

  private mutating func tooLong() -> ProtocolError {
    fail("an event is longer than \(WireLimits.maximumEventByteCount) bytes")
  }

  private mutating func fail(_ what: String) -> ProtocolError {
    let error = ProtocolError(description: "\(what), at byte \(discarded + UInt64(head)) of the stream")
    failure = error
    return error
  }
}
