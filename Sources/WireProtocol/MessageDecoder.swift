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

  private mutating func nextAudio() throws(ProtocolError) -> Message? {
    guard buffer.count - head >= 4 else { return nil }
    let length = buffer[head..<head + 4].reduce(0) { $0 << 8 | Int($1) }
    guard WireLimits.packetLengthRange.contains(length) else {
      let range = WireLimits.packetLengthRange
      throw fail("a packet's length is \(length), not \(range.lowerBound) to \(range.upperBound)")
    }
    let idStart = head + 4
    let audioStart = head + WireLimits.packetHeaderByteCount
    guard buffer.count >= audioStart else { return nil }
    guard let sessionID = SessionID(padded: buffer[idStart..<audioStart]) else {
      throw fail("a packet's session ID is \(Array(buffer[idStart..<audioStart])), not a padded name")
    }
    let end = idStart + length
    guard buffer.count >= end else { return nil }
    take(through: end)
    return .audio(sessionID, buffer[audioStart..<end])
  }

  private mutating func nextEvent() throws(ProtocolError) -> Message? {
    let start = head
    guard let newline = buffer[max(searched, head)...].firstIndex(of: UInt8(ascii: "\n")) else {
      searched = buffer.count
      guard buffer.count - head <= WireLimits.maximumEventByteCount else { throw tooLong() }
      return nil
    }
    guard newline - start <= WireLimits.maximumEventByteCount else { throw tooLong() }
    take(through: newline + 1)
    return .event(buffer[start..<newline])
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
