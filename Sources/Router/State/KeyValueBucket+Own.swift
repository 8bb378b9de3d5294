import NATS

extension KeyValueBucket {
  /// A bucket of the Routers.
  ///
  /// - Parameters:
  ///   - name: a constant.
  ///   - seconds: for an answer.
  init(own name: String, client: NATSClient, seconds: Int64) {
    do {
      try self.init(name, client: client, timeout: .seconds(seconds))
    } catch {
      preconditionFailure("invalid built-in bucket name: \(error)")
    }
  }
}
