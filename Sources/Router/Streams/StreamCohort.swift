import WireProtocol

/// Clients of one repository and encoding that have received the same pieces. Confined to the data plane's loop.
final class StreamCohort {
  struct Key: Hashable {
    var repository: SessionID
    var encoding: RenderEncoding
  }

  let key: Key
  /// The number of the last event that is done with.
  var last: Int
  var members: [ObjectIdentifier: StreamClient] = [:]
  /// Whether its next piece is being fetched.
  var isMoving = false

  init(_ key: Key, last: Int) {
    self.key = key
    self.last = last
  }
}
