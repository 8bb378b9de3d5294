import NIOCore
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
  /// When it had started, as it said last: another value is another engine.
  var startedAtMilliseconds: Int?
  /// Sessions that it plays as far as we know, and that it has not named yet.
  var unconfirmed: Set<SessionID> = []
  private let transport: any EngineTransport
  private unowned let plane: DataPlane

  /// - Parameter prefix: of request IDs, unique to this start of the Router.
  init(
    _ number: EngineNumber, transport: any EngineTransport, plane: DataPlane, prefix: String,
    startedAtMilliseconds: Int? = nil
  ) {
    self.number = number
    self.transport = transport
    self.plane = plane
    self.startedAtMilliseconds = startedAtMilliseconds
    pending = PendingRequests(prefix: "\(prefix)e\(number)")
    bursts = PendingRequests(prefix: "\(prefix)b\(number)")
  }

  var isEstablished: Bool { link.isEstablished }

  func engineConnected(_ hello: Hello) { plane.engineConnected(hello, self) }
  func engineWentAway() { plane.engineWentAway(self) }
  func engineReported(_ event: EngineEvent) { plane.engineReported(event, self) }
}
