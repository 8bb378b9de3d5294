import NATS
import NIOCore
import WireProtocol

/// The JetStream bucket of homes: a key for each session, with the ID of its home as the value.
package struct HomeBucket: Sendable {
  /// The outcome of a claim.
  package enum Claim: Sendable {
    case won(revision: UInt64)
    /// Another Router was faster; `owner` is nil where the key has no value.
    case found(owner: String?, revision: UInt64)
    case failed(KeyValueError)
  }

  /// How often the key is read after a write whose outcome is unknown.
  private static let maximumReads = 3

  private let bucket: KeyValueBucket
  private let router: String

  package init(client: NATSClient, router: String) {
    self.router = router
    bucket = KeyValueBucket(own: "antiphon-homes", client: client, seconds: RouterLimits.homeAnswerSeconds)
  }

  /// Creates the bucket if it does not exist. Its revisions start at its creation time, so the epochs of a bucket that
  /// replaces a lost one are above all former epochs, which engines remember.
  ///
  /// - Parameter replicas: as `KeyValueBucket.Settings.replicas`.
  package func open(replicas: Int) async throws(KeyValueError) {
    var settings = KeyValueBucket.Settings()
    settings.replicas = replicas
    try await bucket.createIfMissing(settings, startsAtTime: true)
  }

  /// - Parameter onEvent: called on the loop with a session, its home and the revision; with nil once all existing homes
  ///   have been reported.
  func watch(
    _ onEvent: @escaping @Sendable ((id: SessionID, owner: String?, revision: UInt64)?) -> Void
  ) throws(KeyValueError) -> NATSSubscription {
    try bucket.watch { event in
      switch event {
      case .current: onEvent(nil)
      case .entry(let entry):
        guard let id = SessionID(keyToken: entry.key) else { return }
        onEvent((id, entry.value.map { String(buffer: $0) }, entry.revision))
      }
    }
  }

  /// Makes this Router a session's home.
  ///
  /// - Parameter epoch: of the home that it replaces; nil for a session without one.
  package func claim(_ id: SessionID, replacing epoch: UInt64?) async -> Claim {
    let (key, value) = (id.keyToken, ByteBuffer(string: router))
    do throws(KeyValueError) {
      if let epoch { return .won(revision: try await bucket.update(key, value, revision: epoch)) }
      return .won(revision: try await bucket.create(key, value))
    } catch {
      guard error == .wrongRevision || error.isOutcomeUnknown else { return .failed(error) }
      return await readHome(of: id)
    }
  }

  /// Reads a session's home from the bucket's leader, which decides it.
  func readHome(of id: SessionID) async -> Claim {
    var failure = KeyValueError.noJetStream
    for _ in 0..<Self.maximumReads {
      do throws(KeyValueError) {
        guard let entry = try await bucket.get(id.keyToken, from: .leader), let value = entry.value
        else { return .found(owner: nil, revision: 0) }
        let owner = String(buffer: value)
        return owner == router
          ? .won(revision: entry.revision) : .found(owner: owner, revision: entry.revision)
      } catch { failure = error }
    }
    return .failed(failure)
  }

  /// Gives up this Router's claim. The caller retries after a failure.
  package func release(_ id: SessionID, epoch: UInt64) async throws(KeyValueError) {
    try await bucket.delete(id.keyToken, revision: epoch)
  }

  /// Purges the delete marker of a release.
  ///
  /// - Returns: whether it is gone.
  package func purge(_ marker: DeleteMarkers.Marker) async -> Bool {
    (try? await bucket.purge(marker.id.keyToken, through: marker.revision)) != nil
  }
}
