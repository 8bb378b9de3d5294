/// Listeners of one session that take so many packets a message (`?frames=`), and those that wait to be one.
struct PacketGroup {
  let packetsPerMessage: Int
  var ports = ListenerPorts()
  private var message = Self.emptyMessage
  private var packetCount = 0

  /// Room for a frame's header, which is known when the message is whole.
  private static let emptyMessage = [UInt8](repeating: 0, count: WebSocketFrames.maximumHeaderByteCount)

  init(packetsPerMessage: Int) { self.packetsPerMessage = packetsPerMessage }

  var isEmpty: Bool { packetCount == 0 }
  var isFull: Bool { packetCount == packetsPerMessage }

  mutating func append(_ record: UnsafeRawBufferPointer) {
    message.append(contentsOf: record)
    packetCount += 1
  }

  /// Gives what it has as a frame, and begins anew.
  mutating func takeFrame(_ body: (UnsafeRawBufferPointer) -> Void) {
    message.withUnsafeMutableBytes {
      body(WebSocketFrames.beginFrame(in: $0, at: WebSocketFrames.maximumHeaderByteCount))
    }
    message.removeLast(message.count - WebSocketFrames.maximumHeaderByteCount)
    packetCount = 0
  }
}
