import COgg
import NIOCore

/// Owns libogg's stream state: packets in, pages out. Nothing outside sees a pointer.
struct OggStream: ~Copyable {
  /// libogg could not allocate.
  struct OutOfMemory: Error {}

  private var state: ogg_stream_state
  private var packetNumber: Int64 = 0

  /// - Parameter serial: tells this stream from others in one file; random.
  init(serial: Int32) throws(OutOfMemory) {
    var state = ogg_stream_state()
    guard ogg_stream_init(&state, serial) == 0 else { throw OutOfMemory() }
    self.state = state
  }

  deinit {
    // The state holds no pointer to itself, so that clearing a copy frees what it owns.
    var state = state
    ogg_stream_clear(&state)
  }

  /// Adds one packet.
  ///
  /// - Parameter granulePosition: samples up to the packet's end.
  mutating func append(_ packet: ByteBuffer, granulePosition: Int64, isLast: Bool = false) {
    var bytes = packet
    bytes.withUnsafeMutableReadableBytes { bytes in
      var description = ogg_packet()
      description.packet = bytes.baseAddress?.assumingMemoryBound(to: UInt8.self)
      description.bytes = bytes.count
      description.b_o_s = packetNumber == 0 ? 1 : 0
      description.e_o_s = isLast ? 1 : 0
      description.granulepos = granulePosition
      description.packetno = packetNumber
      // Copies the bytes, so that the pointer ends here.
      ogg_stream_packetin(&state, &description)
    }
    packetNumber += 1
  }

  /// Ends the page that is being filled and appends it.
  mutating func flush(into pages: inout ByteBuffer) {
    var page = ogg_page()
    while ogg_stream_flush(&state, &page) != 0 {
      pages.writeBytes(UnsafeRawBufferPointer(start: page.header, count: page.header_len))
      pages.writeBytes(UnsafeRawBufferPointer(start: page.body, count: page.body_len))
    }
  }
}
