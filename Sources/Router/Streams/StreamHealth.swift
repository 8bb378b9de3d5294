import NIOCore
import WireProtocol

/// A client of `/stream` as operators see it (docs/decisions/0030). Times are in milliseconds, points in time since
/// 1970.
struct StreamClientView: Encodable, Sendable {
  var id: String
  var repoId: SessionID
  var encoding: RenderEncoding
  var connectedAt: Int64
  var duration: Int64
  /// When its end last acknowledged something that was new.
  var lastActivity: Int64
  var bytesSent: Int
  /// For operators alone.
  var address: String?

  init(_ client: StreamClient) {
    client.checkAcknowledgements()
    let now = Grant.nowMilliseconds
    id = client.id
    repoId = client.request.repositoryID
    encoding = client.request.encoding
    connectedAt = client.connectedMilliseconds
    duration = now - connectedAt
    lastActivity = now - (NIODeadline.now() - client.lastActivity).nanoseconds / 1_000_000
    bytesSent = client.outlet.writtenByteCount
    address = client.channel.remoteAddress?.ipAddress
  }
}

/// How `/stream` fares, as a whole or for one repository.
struct StreamHealth: Encodable, Sendable {
  var repoId: SessionID?
  var activeClients: Int
  /// Sessions of those clients: each has one, from its greeting until it is told to go.
  var activeSessions: Int?
  var totalBuffersCreated: Int?
  /// nil where it is nobody's business.
  var clients: [StreamClientView]?

  /// One repository's: its listeners may know who else listens, and operators from where.
  init(repository: SessionID, clients: [StreamClientView], isAdmin: Bool) {
    repoId = repository
    activeClients = clients.count
    self.clients = clients.sorted { ($0.connectedAt, $0.id) < ($1.connectedAt, $1.id) }.map { client in
      var client = client
      if !isAdmin { client.address = nil }
      return client
    }
  }

  /// All of them. Who they are is looked up for operators alone.
  init(_ hub: StreamHub, isAdmin: Bool) {
    activeClients = hub.clients.count
    activeSessions = hub.clients.values.count { !$0.isEnding }
    totalBuffersCreated = hub.statistics.counts.buffersCreated
    guard isAdmin else { return }
    clients = hub.clients.values.map(StreamClientView.init).sorted {
      ($0.connectedAt, $0.id) < ($1.connectedAt, $1.id)
    }
  }
}
