import WireProtocol

/// Clients of one repository and encoding who have come equally far. Confined to the data plane's loop.
final class StreamLane {
  struct Name: Hashable {
    var repository: SessionID
    var encoding: RenderEncoding
  }

  let name: Name
  /// The number of the last event that is done with.
  var last: Int
  var members: [ObjectIdentifier: StreamClient] = [:]
  /// Whether its next piece is being fetched.
  var isMoving = false

  init(_ name: Name, last: Int) {
    self.name = name
    self.last = last
  }
}
