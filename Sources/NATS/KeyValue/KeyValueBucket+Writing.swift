import NIOCore

extension KeyValueBucket {
  /// Writes, whatever was there.
  ///
  /// - Returns: the new revision.
  @discardableResult
  public func put(_ key: String, _ value: ByteBuffer) async throws(KeyValueError) -> UInt64 {
    try await write(key, value, headers: [:])
  }

  /// Writes where the key has nothing; otherwise `wrongRevision`.
  @discardableResult
  public func create(_ key: String, _ value: ByteBuffer) async throws(KeyValueError) -> UInt64 {
    do throws(KeyValueError) {
      return try await update(key, value, revision: 0)
    } catch {
      // A delete marker is a write too.
      guard error == .wrongRevision, let last = try await last(key, from: .leader), last.value == nil else {
        throw error
      }
      return try await update(key, value, revision: last.revision)
    }
  }

  /// Writes where the key still has the revision; otherwise `wrongRevision`.
  ///
  /// - Parameter revision: 0 for a key that was never written.
  @discardableResult
  public func update(
    _ key: String, _ value: ByteBuffer, revision: UInt64
  ) async throws(KeyValueError) -> UInt64 {
    try await write(key, value, headers: [Self.expectedRevision: "\(revision)"])
  }

  /// Deletes; a key without a value may be deleted.
  ///
  /// - Parameter revision: deletes only where the key still has it.
  /// - Returns: the revision of the mark that is left.
  @discardableResult
  public func delete(_ key: String, revision: UInt64? = nil) async throws(KeyValueError) -> UInt64 {
    var headers: NATSHeaders = [Self.operation: "DEL"]
    if let revision { headers[Self.expectedRevision] = "\(revision)" }
    return try await write(key, ByteBuffer(), headers: headers)
  }

  /// Takes one value away without leaving a mark, which no watch tells. The bucket must allow it.
  public func erase(revision: UInt64) async throws(KeyValueError) {
    let request = try JetStreamRequests.encode(JetStreamRequests.MessageDeletion(seq: revision))
    let answer = try await ask("$JS.API.STREAM.MSG.DELETE.\(stream)", request)
    _ = try JetStreamResponses.decode(JetStreamResponses.Empty.self, answer)
  }

  /// Removes values and delete markers without leaving delete markers. No watch reports it.
  ///
  /// - Parameters:
  ///   - filter: as of `keys`.
  ///   - revision: what was written later stays.
  public func purge(_ filter: String, through revision: UInt64? = nil) async throws(KeyValueError) {
    try await purge(
      JetStreamRequests.Purge(
        filter: subject(filter, allowsWildcards: true), seq: revision.map { $0 + 1 }))
  }

  /// Starts the revisions of a bucket at its creation time where nothing was written and it has not started there itself: it
  /// has replicas, an operator has created it, or a server before 2.10, which ignores the first sequence. Replicas execute
  /// purges and writes in one order. A single server that executes two of these purges at once may remove what was written
  /// after the first.
  func startRevisionsAtCreationTime() async throws(KeyValueError) {
    let answer = try await ask("$JS.API.STREAM.INFO.\(stream)", ByteBuffer())
    let found = try JetStreamResponses.decode(JetStreamResponses.Stream.self, answer)
    guard found.state.lastSeq == 0 else { return }
    guard let created = found.createdMilliseconds else {
      throw .rejected(code: 0, "the stream's creation time cannot be read: \(found.created)")
    }
    try await purge(JetStreamRequests.Purge(filter: nil, seq: created))
  }

  private func purge(_ request: JetStreamRequests.Purge) async throws(KeyValueError) {
    let answer = try await ask("$JS.API.STREAM.PURGE.\(stream)", JetStreamRequests.encode(request))
    _ = try JetStreamResponses.decode(JetStreamResponses.Empty.self, answer)
  }

  private static let expectedRevision = "Nats-Expected-Last-Subject-Sequence"

  private func write(
    _ key: String, _ value: ByteBuffer, headers: NATSHeaders
  ) async throws(KeyValueError) -> UInt64 {
    let answer = try await ask(subject(key), value, headers: headers)
    return try JetStreamResponses.decode(JetStreamResponses.PublishAck.self, answer).seq
  }
}
