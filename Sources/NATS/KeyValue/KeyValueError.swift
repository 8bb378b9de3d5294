/// Why a call of a key-value bucket did not do what it was to.
public enum KeyValueError: Error, Sendable, Equatable {
  /// Nothing was written: another value came first. Who wants to write reads again.
  case wrongRevision
  /// Nothing was done: JetStream is not on, the bucket is not there, or the cluster is choosing who leads it.
  case noJetStream
  /// Nothing was done: the bucket is not there.
  case noBucket
  /// Nothing was done: servers of this version do not keep several replicas of a bucket equal.
  case outdatedServer(String)
  /// Nothing was done: a key or bucket name that is none.
  case invalidKey(String)
  /// JetStream rejects the request.
  case rejected(code: Int, String)
  /// The request or its answer did not get through. A write whose outcome is unknown (`isOutcomeUnknown`) may have
  /// happened: who wrote reads again, from the leader.
  case failed(NATSError)

  public var isOutcomeUnknown: Bool {
    if case .failed(let error) = self { error.isOutcomeUnknown } else { false }
  }

  init(_ error: NATSError) { self = error == .noResponders ? .noJetStream : .failed(error) }
}

extension KeyValueError: CustomStringConvertible {
  public var description: String {
    switch self {
    case .wrongRevision: "wrong revision: another write came first"
    case .noJetStream: "JetStream does not respond for this bucket: it is disabled, or no leader is elected"
    case .noBucket: "there is no such bucket"
    case .outdatedServer(let version):
      "nats-server \(version) does not keep replicas of a bucket consistent: \(NATSServerVersion.minimumForReplicas) or later does"
    case .invalidKey(let key): "invalid key or bucket name: \(key)"
    case .rejected(let code, let text): "JetStream error \(code): \(text)"
    case .failed(let error): error.description
    }
  }
}
