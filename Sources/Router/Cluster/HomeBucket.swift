import NATS
import NIOCore
import WireProtocol

/// The homes as JetStream keeps them: a key for each session, and the ID of its home as the value.
package struct HomeBucket: Sendable {
  /// What became of a claim.
  package enum Claim: Sendable {
    case won(revision: UInt64)
    /// Somebody was faster; nil where the key has nothing.
    case found(owner: String?, revision: UInt64)
    case failed(KeyValueError)
  }

  /// How often a write whose outcome is not known is looked at.
  private static let maximumReads = 3

  private let bucket: KeyValueBucket
  private let router: String

  package init(client: NATSClient, router: String) {
    self.router = router
    bucket = KeyValueBucket(own: "antiphon-homes", client: client, seconds: RouterLimits.homeAnswerSeconds)
  }

  /// Makes the bucket where it is not there. Its revisions begin with the time: the epochs of one that is lost and made anew
  /// are above all of before, which engines remember.
  ///
  /// - Parameter replicas: as `KeyValueBucket.Settings.replicas`.
  package func open(replicas: Int) async throws(KeyValueError) {
    var settings = KeyValueBucket.Settings()
    settings.replicas = replicas
    try await bucket.createUnlessThere(settings)
    try await bucket.beginRevisionsWithTime()
  }

  /// - Parameter onEvent: told on the loop: the session, its home and the revision; nil once all that was there is told.
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
      return await look(at: id)
    }
  }

  /// Reads who a session's home is from the server that decides it.
  func look(at id: SessionID) async -> Claim {
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

  /// The session is no longer this Router's. What fails is tried again by the caller.
  package func release(_ id: SessionID, epoch: UInt64) async throws(KeyValueError) {
    try await bucket.delete(id.keyToken, revision: epoch)
  }

  /// Takes the mark of a release away.
  ///
  /// - Returns: whether it is gone.
  package func purge(_ mark: DeletionMarks.Mark) async -> Bool {
    (try? await bucket.purge(mark.id.keyToken, through: mark.revision)) != nil
  }
}
