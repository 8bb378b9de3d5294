import NIOCore
import NIOWebSocket
import WireProtocol

/// Whole WebSocket frames as bytes, built once and shared by every listener that gets them.
/// A server's frames are not masked, so they are the same for all (RFC 6455, 5.2).
package enum WebSocketFrames {
  /// The longest frame header: opcode, length marker, 64-bit length.
  static let maximumHeaderByteCount = 10

  /// One Opus packet: a message of `antiphon.opus.v1`.
  ///
  /// - Parameter packet: as the engine sends it. The frame is written over the end of its header, the audio stays.
  static func opus(inPlaceOf packet: UnsafeMutableRawBufferPointer) -> UnsafeRawBufferPointer {
    beginFrame(in: packet, at: WireLimits.packetHeaderByteCount)
  }

  /// One record: a message of `antiphon.timed.v1`.
  ///
  /// - Parameter packet: in which `PacketRecord.write` has written the record.
  static func timed(inPlaceOf packet: UnsafeMutableRawBufferPointer) -> UnsafeRawBufferPointer {
    beginFrame(in: packet, at: PacketRecord.offsetInPacket)
  }

  /// Writes a binary frame's header so that it ends where the payload begins.
  ///
  /// - Parameter payload: where that is, behind `maximumHeaderByteCount` bytes at the least where it is long.
  static func beginFrame(
    in bytes: UnsafeMutableRawBufferPointer, at payload: Int
  ) -> UnsafeRawBufferPointer {
    let count = bytes.count - payload
    let start = payload - headerByteCount(payloadByteCount: count)
    writeHeader(
      .binary, payloadByteCount: count, into: UnsafeMutableRawBufferPointer(rebasing: bytes[start...]))
    return UnsafeRawBufferPointer(rebasing: bytes[start...])
  }

  /// What a listener hears at once on joining: for `antiphon.opus.v1` a message a packet, for `antiphon.timed.v1` one
  /// message with all records.
  package static func burst(
    _ burst: SoundBurst, subprotocol: Subprotocol
  ) -> (frames: ByteBuffer, messageCount: Int) {
    switch subprotocol {
    case .opus:
      // All at once, since each growth would copy what is there.
      var frames = ByteBufferAllocator().buffer(capacity: burst.records.readableBytes)
      burst.forEachAudio { audio in
        writeHeader(.binary, payloadByteCount: audio.readableBytes, into: &frames)
        frames.writeImmutableBuffer(audio)
      }
      return (frames, burst.count)
    case .timed:
      var frame = buffer(.binary, payloadByteCount: burst.records.readableBytes)
      frame.writeImmutableBuffer(burst.records)
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
    frame.writeWithUnsafeMutableBytes(minimumWritableBytes: maximumHeaderByteCount) {
      writeHeader(opcode, payloadByteCount: payloadByteCount, into: $0)
    }
  }

  /// Writes a frame's header, which has no mask (RFC 6455, section 5.2).
  ///
  /// - Parameter bytes: with room for it.
  /// - Returns: its length.
  @discardableResult
  private static func writeHeader(
    _ opcode: WebSocketOpcode, payloadByteCount: Int, into bytes: UnsafeMutableRawBufferPointer
  ) -> Int {
    let isFinal: UInt8 = 0x80
    bytes[0] = isFinal | UInt8(webSocketOpcode: opcode)
    let headerByteCount = headerByteCount(payloadByteCount: payloadByteCount)
    switch headerByteCount {
    case 2: bytes[1] = UInt8(payloadByteCount)
    case 4:
      bytes[1] = 126
      bytes.storeBytes(of: UInt16(payloadByteCount).bigEndian, toByteOffset: 2, as: UInt16.self)
    default:
      bytes[1] = 127
      bytes.storeBytes(of: UInt64(payloadByteCount).bigEndian, toByteOffset: 2, as: UInt64.self)
    }
    return headerByteCount
  }

  private static func headerByteCount(payloadByteCount: Int) -> Int {
    switch payloadByteCount {
    case ...125: 2
    case ...Int(UInt16.max): 4
    default: maximumHeaderByteCount
    }
  }
}
