import NIOCore
import ServiceSupport
import WireProtocol

/// One engine as the Router knows it: its link, what waits for its answers, and what it has yet to confirm. Confined to
/// the data plane's loop.
final class RoutedEngine: EngineLinkDelegate {
  let number: EngineNumber
  private(set) lazy var link = EngineLink(
    number, transport: transport, eventLoop: plane.eventLoop, store: plane.store, delegate: self,
    logger: plane.logger)
  var pending: PendingRequests<Requester>
  /// What was asked for those who join.
  var bursts: PendingRequests<BurstWait>
  /// What was asked about sessions that came here; nil where nobody waits for the answer.
  var engineSearches: PendingRequests<EngineSearch?>
  /// When it had started, as it said last: another value is another engine.
  var startedAtMilliseconds: Int?
  /// Sessions that it plays as far as we know, and that it has not named yet.
  var unconfirmed: Set<SessionID> = []
  /// When the engine had started that has not named all its sessions yet (`listed`); nil where none is listing.
  var listingStartedAtMilliseconds: Int?
  /// Whether its clock is ours: it is on the same machine.
  private let sharesClock: Bool
  private var clock = ClockOffset.none
  /// As its heartbeat says (`EngineHeartbeat`).
  var load = 0.0
  /// It has refused a play for want of room: others are better until its next heartbeat.
  var isFull = false
  /// Nothing is to be placed on it.
  var isStopping = false
  /// Sessions that were placed on it.
  var sessionCount = 0
  private let transport: any EngineTransport
  private unowned let plane: DataPlane

  init(
    _ number: EngineNumber, transport: any EngineTransport, plane: DataPlane,
    startedAtMilliseconds: Int? = nil, sharesClock: Bool = true
  ) {
    self.number = number
    self.sharesClock = sharesClock
    self.transport = transport
    self.plane = plane
    self.startedAtMilliseconds = startedAtMilliseconds
    pending = PendingRequests(prefix: "\(plane.id)e\(number)")
    bursts = PendingRequests(prefix: "\(plane.id)b\(number)")
    engineSearches = PendingRequests(prefix: "\(plane.id)o\(number)")
  }

  var isEstablished: Bool { link.isEstablished }

  /// Loads are old by a second, in which many sessions may be placed: the number of sessions decides between loads that
  /// are about the same.
  func isLessLoaded(than other: RoutedEngine) -> Bool {
    func rank(_ engine: RoutedEngine) -> (Int, Int, Int, UInt32) {
      (
        engine.isStopping ? 2 : engine.isFull ? 1 : 0, Int((engine.load * 10).rounded(.down)),
        engine.sessionCount,
        engine.number.value
      )
    }
    return rank(self) < rank(other)
  }

  /// A time of our clock by the engine's.
  func timeOfItsClock(_ nanoseconds: UInt64) -> UInt64 { clock.engines(nanoseconds) }

  func engineConnected(_ hello: Hello) {
    var hello = hello
    if !sharesClock {
      clock = ClockOffset(
        engineNanoseconds: hello.nowNanoseconds, ourNanoseconds: MonotonicClock.nowNanoseconds)
      hello.sessions = hello.sessions.map(clock.ours)
    }
    plane.engineConnected(hello, self)
  }

  func engineWentAway() { plane.engineWentAway(self) }
  func engineReported(_ event: EngineEvent) { plane.engineReported(clock.ours(event), self) }
}
