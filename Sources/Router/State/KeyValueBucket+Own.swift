import NATS

extension KeyValueBucket {
  /// A bucket of the Routers'.
  ///
  /// - Parameters:
  ///   - name: of a bucket, which nothing that anyone has set is in.
  ///   - seconds: for an answer.
  init(own name: String, client: NATSClient, seconds: Int64) {
    do {
      try self.init(name, client: client, timeout: .seconds(seconds))
    } catch {
      preconditionFailure("a bucket's name of ours is none: \(error)")
    }
  }
}
