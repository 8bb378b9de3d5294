/// What a Router says of itself once a second, and when it is asked.
public struct RouterHeartbeat: Codable, Sendable, Equatable {
  public var router: String
  /// HOST:PORT at which the other Routers reach its HTTP server.
  public var address: String
  /// What the others show it with the requests that they forward.
  public var relaySecret: String
  /// Whether it stops, so that the others take over its sessions.
  public var isStopping: Bool

  public init(router: String, address: String, relaySecret: String, isStopping: Bool = false) {
    self.router = router
    self.address = address
    self.relaySecret = relaySecret
    self.isStopping = isStopping
  }

  enum CodingKeys: String, CodingKey {
    case router, address
    case relaySecret = "relay_secret"
    case isStopping = "stopping"
  }
}
