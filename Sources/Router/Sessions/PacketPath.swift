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
  /// Who plays it, or played it last.
  var engine: EngineNumber
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
  /// - Parameters:
  ///   - packet: header and audio. Each frame is built where the packet's header was, which has been read.
  ///   - engine: who has sent it. What another engine sends than the one that plays the session is heard by nobody.
  func route(_ id: SessionID, _ packet: UnsafeMutableRawBufferPointer, from engine: EngineNumber) {
    statistics.packetsReceived += 1
    guard let route = routes[id], route.pointee.engine == engine else {
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
}
