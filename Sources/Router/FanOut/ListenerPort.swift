import CLinux

/// What the packet path needs of one listener.
///
/// Memory of its own, so that a packet costs no reference counting and no check of exclusive access: `FrameOutlet`
/// allocates it and frees it with itself, and a session holds a pointer to it exactly while it holds the listener.
/// Everything here is on the data plane's loop.
struct ListenerPort {
  /// The listener's socket while nothing waits for it anywhere: what is written to it then keeps its place. −1 where
  /// its outlet has to be asked. The outlet takes it back as its channel is closed, before the number can be another
  /// socket's: NIO calls `channelInactive` right after it has closed the descriptor, first of all handlers.
  var descriptor: Int32 = -1
  /// The owner of this memory, so that it is there whenever this is.
  unowned(unsafe) let outlet: FrameOutlet
}

/// The ports of a session's listeners of one subprotocol, in no order.
struct ListenerPorts {
  private var ports: UnsafeMutablePointer<UnsafeMutablePointer<ListenerPort>>?
  private(set) var count = 0
  private var capacity = 0

  subscript(index: Int) -> UnsafeMutablePointer<ListenerPort> {
    // Only asked below `count`, so that there is memory.
    ports.unsafelyUnwrapped[index]
  }

  mutating func append(_ port: UnsafeMutablePointer<ListenerPort>) {
    if count == capacity {
      let larger = UnsafeMutablePointer<UnsafeMutablePointer<ListenerPort>>.allocate(
        capacity: max(1, 2 * capacity))
      if let ports { larger.moveInitialize(from: ports, count: count) }
      ports?.deallocate()
      ports = larger
      capacity = max(1, 2 * capacity)
    }
    (ports.unsafelyUnwrapped + count).initialize(to: port)
    count += 1
  }

  mutating func remove(_ port: UnsafeMutablePointer<ListenerPort>) {
    guard let ports, let index = (0..<count).first(where: { ports[$0] == port }) else { return }
    count -= 1
    ports[index] = ports[count]
  }

  /// Asks for the first one's memory: of many, the others follow while it is written to.
  func prefetch() {
    if count > 0 { antiphon_prefetch(self[0]) }
  }

  /// Frees its memory, and nothing of the listeners'.
  mutating func deallocate() {
    ports?.deallocate()
    self = ListenerPorts()
  }
}
