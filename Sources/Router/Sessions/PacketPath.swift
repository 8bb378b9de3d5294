import CLinux
import Glibc
import NIOCore
import ServiceSupport
import WireProtocol

/// What the packet path needs of one session, in memory that its `RoutedSession` allocates, and frees with itself.
struct PacketRoute {
  var counter = PacketCounter()
  var opus = ListenerPorts()
  var timed = ListenerPorts()
  /// Of those that take several packets a message.
  var groups = PacketGroups()
  var playerCount = 0
  /// Who plays it, or played it last.
  var engine: EngineNumber
  /// The owner of this memory.
  unowned(unsafe) let session: RoutedSession

  /// Asks for the memory that a packet is going to need.
  func prefetchPorts() {
    opus.prefetch()
    timed.prefetch()
    groups.prefetch()
  }
}

/// A packet among the bytes that an engine has sent.
struct PacketPlace {
  var sessionID: SessionID
  /// The whole packet, its header included.
  var place: Range<Int>
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

  /// Packets that are looked up together: few enough that what they need is still in a cache when it is its turn.
  static let maximumBatchCount = 16

  private static let sendFlags = Int32(Glibc.MSG_DONTWAIT) | Int32(Glibc.MSG_NOSIGNAL)

  private let statistics: RouterStatistics
  private var routes: [SessionID: UnsafeMutablePointer<PacketRoute>] = [:]
  /// Changes with `routes`, so that a route which was looked up before is known to be still there.
  private var revision = 0
  /// The routes of one batch. Of its own memory, for `maximumBatchCount` of them; freed with the path.
  private let found = UnsafeMutablePointer<UnsafeMutablePointer<PacketRoute>?>.allocate(
    capacity: PacketPath.maximumBatchCount)
  /// Empty between two packets; kept for its memory.
  private var slow: [Slow] = []
  /// When the packets that are being routed came.
  private var nowNanoseconds: UInt64 = 0

  init(statistics: RouterStatistics) {
    self.statistics = statistics
  }

  deinit { found.deallocate() }

  func add(_ session: RoutedSession) { set(session.route, of: session) }

  func remove(_ session: RoutedSession) { set(nil, of: session) }

  private func set(_ route: UnsafeMutablePointer<PacketRoute>?, of session: RoutedSession) {
    routes[session.id] = route
    revision += 1
  }

  /// Packets have come: one look at the clock for all of them.
  func begin() { nowNanoseconds = MonotonicClock.nowNanoseconds }

  /// Gives packets to their sessions' listeners, one after another.
  ///
  /// What the kernel does for one packet pushes what the next one needs out of the caches. So they are all looked up
  /// first, and what is behind each is asked for while the others are.
  ///
  /// - Parameters:
  ///   - batch: at most `maximumBatchCount`.
  ///   - bytes: header and audio of each. Each frame is built where the packet's header was, which has been read.
  ///   - engine: who has sent them. What another engine sends than the one that plays the session is heard by nobody.
  func route(
    _ batch: ArraySlice<PacketPlace>, in bytes: UnsafeMutableRawBufferPointer, from engine: EngineNumber
  ) {
    statistics.packetsReceived += batch.count
    for (index, packet) in batch.enumerated() {
      let route = routes[packet.sessionID]
      antiphon_prefetch(route)
      found[index] = route
    }
    for index in 0..<batch.count { found[index]?.pointee.prefetchPorts() }
    let foundRevision = revision
    for (index, packet) in batch.enumerated() {
      // One before it may have ended in a listener's end, and in its session's.
      let route = revision == foundRevision ? found[index] : routes[packet.sessionID]
      guard let route, route.pointee.engine == engine else {
        statistics.stalePackets += 1
        continue
      }
      give(UnsafeMutableRawBufferPointer(rebasing: bytes[packet.place]), to: route)
    }
  }

  private func give(_ packet: UnsafeMutableRawBufferPointer, to route: UnsafeMutablePointer<PacketRoute>) {
    let place = route.pointee.counter.take()
    statistics.countLateness(dueNanoseconds: place.dueNanoseconds, nowNanoseconds: nowNanoseconds)
    if route.pointee.timed.count > 0 || route.pointee.groups.count > 0 {
      let record = PacketRecord.write(place, inPlaceOf: packet)
      append(record, to: route.pointee.groups)
      if route.pointee.timed.count > 0 {
        write(WebSocketFrames.timed(inPlaceOf: packet), to: route.pointee.timed)
      }
    }
    if route.pointee.opus.count > 0 {
      write(WebSocketFrames.opus(inPlaceOf: packet), to: route.pointee.opus)
    }
    // Until here nobody was called who might change listeners or sessions; from here on the route may be gone.
    let players = route.pointee.playerCount > 0 ? route.pointee.session : nil
    if !slow.isEmpty { keepPlaces() }
    players?.giveToPlayers(
      UnsafeRawBufferPointer(rebasing: packet[WireLimits.packetHeaderByteCount...]), nowNanoseconds)
    if !slow.isEmpty { writeSlowly() }
  }

  private func append(_ record: UnsafeRawBufferPointer, to groups: PacketGroups) {
    for index in 0..<groups.count {
      let group = groups[index]
      group.pointee.append(record)
      if group.pointee.isFull { write(group.pointee.takeFrame(), to: group.pointee.ports) }
    }
  }

  /// Sends what waits for its message to be full: what comes next is not to come before it, or is for others, too.
  func completeMessages(of session: RoutedSession) {
    let groups = session.route.pointee.groups
    for index in 0..<groups.count where !groups[index].pointee.isEmpty {
      write(groups[index].pointee.takeFrame(), to: groups[index].pointee.ports)
    }
    guard !slow.isEmpty else { return }
    keepPlaces()
    writeSlowly()
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
