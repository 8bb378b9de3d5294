import CLinux

/// Listeners of one session that take so many packets a message (`?frames=`), and the message that is being filled for
/// them. Its memory is its own, so that a packet costs a copy and no reference counting; the owner frees it
/// (`PacketGroups`).
struct PacketGroup {
  let packetsPerMessage: Int
  var ports = ListenerPorts()
  private var message: UnsafeMutableRawBufferPointer
  /// How much of the message is filled. It begins with room for a frame's header, which is known when the message is whole.
  private var byteCount = WebSocketFrames.maximumHeaderByteCount
  private var packetCount = 0

  init(packetsPerMessage: Int) {
    self.packetsPerMessage = packetsPerMessage
    message = Self.memory(byteCount)
  }

  private static func memory(_ byteCount: Int) -> UnsafeMutableRawBufferPointer {
    // As `PacketRecord` stores its fields: at any address.
    .allocate(byteCount: byteCount, alignment: 1)
  }

  var isEmpty: Bool { packetCount == 0 }
  var isFull: Bool { packetCount == packetsPerMessage }

  mutating func append(_ record: UnsafeRawBufferPointer) {
    let end = byteCount + record.count
    if end > message.count { grow(to: 2 * end) }
    UnsafeMutableRawBufferPointer(rebasing: message[byteCount..<end]).copyMemory(from: record)
    byteCount = end
    packetCount += 1
  }

  private mutating func grow(to newByteCount: Int) {
    let larger = Self.memory(newByteCount)
    larger.copyMemory(from: UnsafeRawBufferPointer(rebasing: message[..<byteCount]))
    message.deallocate()
    message = larger
  }

  /// Asks for the memory that the next record goes to, and for the listener's where it makes the message whole.
  func prefetch() {
    antiphon_prefetch(message.baseAddress.map { $0 + byteCount })
    if packetCount + 1 == packetsPerMessage { ports.prefetch() }
  }

  /// What it has as a frame, and begins anew: until the next `append`.
  mutating func takeFrame() -> UnsafeRawBufferPointer {
    let whole = UnsafeMutableRawBufferPointer(rebasing: message[..<byteCount])
    byteCount = WebSocketFrames.maximumHeaderByteCount
    packetCount = 0
    return WebSocketFrames.beginFrame(in: whole, at: WebSocketFrames.maximumHeaderByteCount)
  }

  /// Frees its memory, and nothing of the listeners'.
  mutating func deallocate() {
    ports.deallocate()
    message.deallocate()
  }
}

/// The groups of one session, in no order.
struct PacketGroups {
  private var groups: UnsafeMutablePointer<PacketGroup>?
  private(set) var count = 0

  subscript(index: Int) -> UnsafeMutablePointer<PacketGroup> {
    // Only asked below `count`, so that there is memory.
    groups.unsafelyUnwrapped + index
  }

  private func index(of packetsPerMessage: Int) -> Int? {
    (0..<count).first { self[$0].pointee.packetsPerMessage == packetsPerMessage }
  }

  mutating func add(_ port: UnsafeMutablePointer<ListenerPort>, packetsPerMessage: Int) {
    if let index = index(of: packetsPerMessage) { return self[index].pointee.ports.append(port) }
    // There are as many as `?frames=` has values.
    let larger = UnsafeMutablePointer<PacketGroup>.allocate(capacity: count + 1)
    if let groups { larger.moveInitialize(from: groups, count: count) }
    groups?.deallocate()
    groups = larger
    (larger + count).initialize(to: PacketGroup(packetsPerMessage: packetsPerMessage))
    count += 1
    self[count - 1].pointee.ports.append(port)
  }

  mutating func remove(_ port: UnsafeMutablePointer<ListenerPort>, packetsPerMessage: Int) {
    guard let index = index(of: packetsPerMessage) else { return }
    self[index].pointee.ports.remove(port)
    guard self[index].pointee.ports.count == 0 else { return }
    self[index].pointee.deallocate()
    count -= 1
    if index < count { self[index].pointee = self[count].pointee }
  }

  func prefetch() {
    for index in 0..<count { self[index].pointee.prefetch() }
  }

  /// Frees all that it has, and nothing of the listeners'.
  mutating func deallocate() {
    for index in 0..<count { self[index].pointee.deallocate() }
    groups?.deallocate()
    self = PacketGroups()
  }
}
