import Glibc
import NIOCore
import ServiceSupport
import WireProtocol

/// What the packet path needs of one session, in memory that its `RoutedSession` allocates, and frees with itself.
struct PacketRoute {
  var counter = PacketCounter()
  var opus = ListenerPorts()
  var timed = ListenerPorts()
  var groupCount = 0
  var playerCount = 0
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
  /// What is collected of a burst.
  private struct IncomingBurst {
    var sessionID: SessionID
    var packetsLeft: Int
    var place: PacketCounter.Place
    var sound = SoundBurst()
    var end: (SoundBurst?) -> Void
  }

  private var incoming: IncomingBurst?
  /// When the packets that are being routed came.
  private var nowNanoseconds: UInt64 = 0

  init(statistics: RouterStatistics) {
    self.statistics = statistics
  }

  func add(_ session: RoutedSession) { routes[session.id] = session.route }

  func remove(_ session: RoutedSession) { routes[session.id] = nil }

  /// Packets have come: one look at the clock for all of them.
  func begin() { nowNanoseconds = MonotonicClock.nowNanoseconds }

  /// Takes a packet of the engine's stream.
  ///
  /// - Parameter packet: header and audio, to be overwritten.
  /// - Returns: false where it is not what a burst has said that comes.
  func take(_ id: SessionID, _ packet: UnsafeMutableRawBufferPointer) -> Bool {
    guard incoming == nil else { return addToBurst(id, packet) }
    route(id, packet)
    return true
  }

  /// Gives a packet to its session's listeners.
  ///
  /// - Parameter packet: header and audio. Each frame is built where the packet's header was, which has been read.
  private func route(_ id: SessionID, _ packet: UnsafeMutableRawBufferPointer) {
    statistics.packetsReceived += 1
    guard let route = routes[id] else {
      statistics.stalePackets += 1
      return
    }
    let place = route.pointee.counter.take()
    statistics.countLateness(dueNanoseconds: place.dueNanoseconds, nowNanoseconds: nowNanoseconds)
    if route.pointee.timed.count > 0 || route.pointee.groupCount > 0 {
      let record = PacketRecord.write(place, inPlaceOf: packet)
      if route.pointee.groupCount > 0 { append(record, toGroupsOf: route.pointee.session) }
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

  private func append(_ record: UnsafeRawBufferPointer, toGroupsOf session: RoutedSession) {
    for index in session.groups.indices {
      session.groups[index].append(record)
      if session.groups[index].isFull { writeGroup(index, of: session) }
    }
  }

  private func writeGroup(_ index: Int, of session: RoutedSession) {
    let ports = session.groups[index].ports
    session.groups[index].takeFrame { write($0, to: ports) }
  }

  /// Sends what waits for its message to be full: what comes next is not to come before it, or is for others, too.
  func completeMessages(of session: RoutedSession) {
    for index in session.groups.indices where !session.groups[index].isEmpty {
      writeGroup(index, of: session)
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

  // MARK: Bursts

  var isCollectingBurst: Bool { incoming != nil }

  /// Collects the next packets, which are a session's last ones again.
  ///
  /// - Parameters:
  ///   - first: place and time of the first of them.
  ///   - end: called when all are there, before the session's next packet; with nil where they do not come.
  func collectBurst(
    of id: SessionID, from first: EngineEvent.Anchor, count: Int, _ end: @escaping (SoundBurst?) -> Void
  ) {
    guard count > 0 else { return end(nil) }
    // A session that is not known has nobody who waits.
    var sequence = routes[id]?.pointee.counter.next.sequence ?? 0
    sequence &-= UInt32(truncatingIfNeeded: count)
    let place = PacketCounter.Place(
      sequence: sequence, dueNanoseconds: first.dueNanoseconds,
      positionMilliseconds: UInt32(clamping: first.positionMilliseconds))
    incoming = IncomingBurst(sessionID: id, packetsLeft: count, place: place, end: end)
  }

  /// What was collected is of an engine that has gone.
  func dropBurst() {
    let burst = incoming
    incoming = nil
    burst?.end(nil)
  }

  private func addToBurst(_ id: SessionID, _ packet: UnsafeMutableRawBufferPointer) -> Bool {
    guard var burst = incoming, burst.sessionID == id else { return false }
    // One holder, so that its bytes are not copied.
    incoming = nil
    var counter = PacketCounter(at: burst.place)
    burst.sound.append(counter.take(), packet[WireLimits.packetHeaderByteCount...])
    burst.place = counter.next
    burst.packetsLeft -= 1
    if burst.packetsLeft > 0 {
      incoming = burst
    } else {
      burst.end(burst.sound)
    }
    return true
  }
}
