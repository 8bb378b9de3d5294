import Glibc
import NIOCore
import ServiceSupport
import WireProtocol

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

  /// Frees its memory, and nothing of the listeners'.
  mutating func deallocate() {
    ports?.deallocate()
    self = ListenerPorts()
  }
}

/// What the packet path needs of one session, in memory that its `RoutedSession` allocates, and frees with itself.
struct PacketRoute {
  var counter = PacketCounter()
  var opus = ListenerPorts()
  var timed = ListenerPorts()
  /// The owner of this memory.
  unowned(unsafe) let session: RoutedSession
}

/// A packet's way to the listeners of its session: one look-up, and for each listener that keeps up one system call.
/// Confined to the data plane's loop.
final class PacketPath {
  /// One of those that have not taken a whole frame.
  private struct Slow {
    var outlet: FrameOutlet
    var frame: ByteBuffer
    /// How much of it the socket has taken; nil where something waits before it.
    var takenByteCount: Int?
    var sharerCount: Int
  }

  private static let sendFlags = Int32(Glibc.MSG_DONTWAIT) | Int32(Glibc.MSG_NOSIGNAL)

  private let statistics: RouterStatistics
  private var routes: [SessionID: UnsafeMutablePointer<PacketRoute>] = [:]
  /// Empty between two packets; kept for its memory.
  private var slow: [Slow] = []
  /// When the packets that are being routed came.
  private var nowNanoseconds: UInt64 = 0

  init(statistics: RouterStatistics) {
    self.statistics = statistics
  }

  func add(_ session: RoutedSession) { routes[session.id] = session.route }

  func remove(_ session: RoutedSession) { routes[session.id] = nil }

  /// Packets have come: one look at the clock for all of them.
  func begin() { nowNanoseconds = MonotonicClock.nowNanoseconds }

  /// Gives a packet to its session's listeners.
  ///
  /// - Parameter packet: header and audio. Each frame is built where the packet's header was, which has been read.
  func route(_ id: SessionID, _ packet: UnsafeMutableRawBufferPointer) {
    statistics.packetsReceived += 1
    guard let route = routes[id] else {
      statistics.stalePackets += 1
      return
    }
    let place = route.pointee.counter.take()
    statistics.countLateness(dueNanoseconds: place.dueNanoseconds, nowNanoseconds: nowNanoseconds)
    if route.pointee.timed.count > 0 {
      write(WebSocketFrames.timed(place, inPlaceOf: packet), to: route.pointee.timed)
    }
    if route.pointee.opus.count > 0 {
      write(WebSocketFrames.opus(inPlaceOf: packet), to: route.pointee.opus)
    }
    // Nothing until here has called anyone, who might change listeners or sessions. Held, for what comes may forget it.
    let session = route.pointee.session
    if !slow.isEmpty { keepPlaces() }
    session.keep(
      place, UnsafeRawBufferPointer(rebasing: packet[WireLimits.packetHeaderByteCount...]), nowNanoseconds)
    if !slow.isEmpty { writeSlowly() }
  }

  private func write(_ frame: UnsafeRawBufferPointer, to ports: ListenerPorts) {
    var sent = 0
    var copy: ByteBuffer?
    for index in 0..<ports.count {
      let port = ports[index]
      let taken: Int?
      if port.pointee.descriptor >= 0 {
        let count = send(port.pointee.descriptor, frame.baseAddress, frame.count, Self.sendFlags)
        if count == frame.count {
          sent += 1
          continue
        }
        // NIO meets what is wrong with the socket, too, and closes it.
        taken = max(0, count)
      } else {
        taken = nil
      }
      let shared = copy ?? ByteBuffer(bytes: frame)
      copy = shared
      slow.append(
        Slow(outlet: port.pointee.outlet, frame: shared, takenByteCount: taken, sharerCount: ports.count))
    }
    statistics.messagesSent += sent
    statistics.bytesSent += sent * frame.count
  }

  /// What is left of a frame goes to NIO before anything else can be written, and before anyone is called.
  private func keepPlaces() {
    for listener in slow {
      guard let taken = listener.takenByteCount else { continue }
      listener.outlet.writeRest(of: listener.frame, after: taken)
    }
  }

  private func writeSlowly() {
    var listeners: [Slow] = []
    swap(&listeners, &slow)
    for listener in listeners {
      if listener.takenByteCount != nil {
        listener.outlet.flush()
      } else {
        listener.outlet.sendAudio(listener.frame, sharedBy: listener.sharerCount)
      }
    }
    listeners.removeAll(keepingCapacity: true)
    slow = listeners
  }
}
