import WireProtocol

/// Where there are several Routers: which sessions are this one's. Confined to the data plane's loop.
protocol SessionHomes: AnyObject {
  /// What commands of a session carry; nil where it is not this Router's, or not yet.
  func epoch(of id: SessionID) -> UInt64?
  /// Whether the session is this Router's, and all of it is here.
  func isHere(_ id: SessionID) -> Bool
  /// A session plays, and nobody may be its home.
  func adopt(_ id: SessionID)
  /// Somebody says that the session has another home.
  func verify(_ id: SessionID)
  /// How many sessions are this Router's.
  var ownCount: Int { get }
  /// Connections that are forwarded to other Routers.
  var forwardedCount: Int { get }
  /// Why sessions cannot be claimed; nil where they can.
  var problem: String? { get }
}
