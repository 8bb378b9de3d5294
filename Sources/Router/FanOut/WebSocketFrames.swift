import NIOCore
import NIOWebSocket
import WireProtocol

/// Whole WebSocket frames as bytes, built once and shared by every listener that gets them.
/// A server's frames are not masked, so they are the same for all (RFC 6455, 5.2).
package enum WebSocketFrames {
  /// The longest frame header: opcode, length marker, 64-bit length.
  private static let maximumHeaderByteCount = 10

  /// One Opus packet: a message of `antiphon.opus.v1`.
  ///
  /// - Parameter packet: as the engine sends it. The frame is written over the end of its header, the audio stays.
  static func opus(inPlaceOf packet: UnsafeMutableRawBufferPointer) -> UnsafeRawBufferPointer {
    beginFrame(in: packet, at: WireLimits.packetHeaderByteCount)
  }

  /// One record: a message of `antiphon.timed.v1`. Record and frame have at most 22 bytes before the audio, and the
  /// engine's header 28.
  static func timed(
    _ place: PacketCounter.Place, inPlaceOf packet: UnsafeMutableRawBufferPointer
  ) -> UnsafeRawBufferPointer {
    let start = WireLimits.packetHeaderByteCount - PacketRecord.headerByteCount
    PacketRecord.writeHeader(
      place, audioByteCount: packet.count - WireLimits.packetHeaderByteCount,
      to: UnsafeMutableRawBufferPointer(rebasing: packet[start...]))
    return beginFrame(in: packet, at: start)
  }

  /// Writes a binary frame's header so that it ends where the payload begins.
  private static func beginFrame(
    in bytes: UnsafeMutableRawBufferPointer, at payload: Int
  ) -> UnsafeRawBufferPointer {
    let count = bytes.count - payload
    let isShort = count <= 125
    let start = payload - (isShort ? 2 : 4)
    bytes[start] = 0x80 | UInt8(webSocketOpcode: .binary)
    if isShort {
      bytes[start + 1] = UInt8(count)
    } else {
      bytes[start + 1] = 126
      bytes.storeBytes(of: UInt16(count).bigEndian, toByteOffset: start + 2, as: UInt16.self)
    }
    return UnsafeRawBufferPointer(rebasing: bytes[start...])
  }

  /// What a listener hears at once on joining: for `antiphon.opus.v1` a message a packet, for
  /// `antiphon.timed.v1` one message with all records. nil where there is nothing.
  package static func burst(
    _ ring: LateJoinRing, packetCount: Int, subprotocol: Subprotocol
  ) -> (frames: ByteBuffer, messageCount: Int)? {
    // All at once, since each growth would copy what is there.
    var byteCount = 0
    ring.forEach(last: packetCount) { record, _ in byteCount += record.readableBytes }
    var bytes = ByteBufferAllocator().buffer(capacity: byteCount)
    var packets = 0
    switch subprotocol {
    case .opus:
      ring.forEach(last: packetCount) { _, audio in
        writeHeader(.binary, payloadByteCount: audio.readableBytes, into: &bytes)
        bytes.writeImmutableBuffer(audio)
        packets += 1
      }
      return packets == 0 ? nil : (bytes, packets)
    case .timed:
      ring.forEach(last: packetCount) { record, _ in
        bytes.writeImmutableBuffer(record)
        packets += 1
      }
      guard packets > 0 else { return nil }
      var frame = buffer(.binary, payloadByteCount: bytes.readableBytes)
      frame.writeImmutableBuffer(bytes)
      return (frame, 1)
    }
  }

  static func text(_ json: some Collection<UInt8>) -> ByteBuffer {
    var frame = buffer(.text, payloadByteCount: json.count)
    frame.writeBytes(json)
    return frame
  }

  /// The first bytes of a text frame, of which the rest is written after them.
  static func beginning(ofText json: some Collection<UInt8>, payloadByteCount: Int) -> ByteBuffer {
    var frame = ByteBufferAllocator().buffer(capacity: maximumHeaderByteCount + json.count)
    writeHeader(.text, payloadByteCount: payloadByteCount, into: &frame)
    frame.writeBytes(json)
    return frame
  }

  static func ping() -> ByteBuffer { buffer(.ping, payloadByteCount: 0) }

  static func pong(_ payload: ByteBuffer) -> ByteBuffer {
    var frame = buffer(.pong, payloadByteCount: payload.readableBytes)
    frame.writeImmutableBuffer(payload)
    return frame
  }

  /// - Parameter reason: cut to the 123 bytes that fit a control frame.
  static func close(_ code: WebSocketErrorCode, reason: String) -> ByteBuffer {
    var payload = ByteBuffer()
    payload.write(webSocketErrorCode: code)
    payload.writeBytes(reason.utf8.prefix(123))
    var frame = buffer(.connectionClose, payloadByteCount: payload.readableBytes)
    frame.writeImmutableBuffer(payload)
    return frame
  }

  private static func buffer(_ opcode: WebSocketOpcode, payloadByteCount: Int) -> ByteBuffer {
    var frame = ByteBufferAllocator().buffer(capacity: maximumHeaderByteCount + payloadByteCount)
    writeHeader(opcode, payloadByteCount: payloadByteCount, into: &frame)
    return frame
  }

  private static func writeHeader(
    _ opcode: WebSocketOpcode, payloadByteCount: Int, into frame: inout ByteBuffer
  ) {
    let isFinal: UInt8 = 0x80
    frame.writeInteger(isFinal | UInt8(webSocketOpcode: opcode))
    switch payloadByteCount {
    case ...125: frame.writeInteger(UInt8(payloadByteCount))
    case ...Int(UInt16.max): frame.writeMultipleIntegers(UInt8(126), UInt16(payloadByteCount))
    default: frame.writeMultipleIntegers(UInt8(127), UInt64(payloadByteCount))
    }
  }
}
