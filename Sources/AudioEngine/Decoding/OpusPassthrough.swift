/// When a source's own Opus packets can be sent unaltered (RFC 6716, section 3.1; RFC 7845, section 5.1).
package enum OpusPassthrough {
  /// Far above what 20 ms of sound need. A segment of a timeline holds four of these.
  static let maximumPacketByteCount = 4_096

  /// Whether a stream's header allows it: one stream of one or two channels, no gain to apply.
  package static func fits(head: [UInt8]) -> Bool {
    guard head.count >= 19, head.starts(with: Array("OpusHead".utf8)) else { return false }
    let channelCount = head[9]
    let gain = Int16(bitPattern: UInt16(head[16]) | UInt16(head[17]) << 8)
    let mappingFamily = head[18]
    return (1...2).contains(channelCount) && gain == 0 && mappingFamily == 0
  }

  /// Whether a packet is exactly 20 ms of sound, by its TOC byte.
  package static func fits(packet: UnsafeRawBufferPointer) -> Bool {
    guard let toc = packet.first, packet.count <= maximumPacketByteCount else { return false }
    let configuration = Int(toc >> 3)
    // In units of 2.5 ms: SILK, hybrid and CELT have different sets of durations.
    let frameDuration =
      switch configuration {
      case 0..<12: [4, 8, 16, 24][configuration % 4]
      case 12..<16: [4, 8][configuration % 2]
      default: [1, 2, 4, 8][configuration % 4]
      }
    let frameCount =
      switch toc & 3 {
      case 0: 1
      case 1, 2: 2
      default: packet.count > 1 ? Int(packet[1] & 0x3F) : 0
      }
    return frameDuration * frameCount == 8
  }
}
