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
      // The mark of a deletion is a write too.
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
    let question = try JetStreamQuestions.encode(JetStreamQuestions.Erasure(seq: revision))
    let answer = try await ask("$JS.API.STREAM.MSG.DELETE.\(stream)", question)
    _ = try JetStreamAnswers.decode(JetStreamAnswers.Nothing.self, answer)
  }

  /// Takes values and marks of deletions away without leaving marks, which no watch tells.
  ///
  /// - Parameters:
  ///   - filter: as of `keys`.
  ///   - revision: what was written later stays.
  public func purge(_ filter: String, through revision: UInt64? = nil) async throws(KeyValueError) {
    try await purge(
      JetStreamQuestions.Purge(
        filter: subject(filter, allowsWildcards: true), seq: revision.map { $0 + 1 }))
  }

  /// Has revisions begin with the time at which the bucket was made, in Unix milliseconds, where nothing was ever written.
  ///
  /// All who do it have them begin with the same, so that one that is late takes away nothing that was written since.
  public func beginRevisionsWithTime() async throws(KeyValueError) {
    let answer = try await ask("$JS.API.STREAM.INFO.\(stream)", ByteBuffer())
    let found = try JetStreamAnswers.decode(JetStreamAnswers.Stream.self, answer)
    guard found.state.lastSeq == 0 else { return }
    guard let created = found.createdMilliseconds else {
      throw .rejected(code: 0, "the time at which the stream was made cannot be read: \(found.created)")
    }
    try await purge(JetStreamQuestions.Purge(filter: nil, seq: created))
  }

  private func purge(_ question: JetStreamQuestions.Purge) async throws(KeyValueError) {
    let answer = try await ask("$JS.API.STREAM.PURGE.\(stream)", JetStreamQuestions.encode(question))
    _ = try JetStreamAnswers.decode(JetStreamAnswers.Nothing.self, answer)
  }

  private static let expectedRevision = "Nats-Expected-Last-Subject-Sequence"

  private func write(
    _ key: String, _ value: ByteBuffer, headers: NATSHeaders
  ) async throws(KeyValueError) -> UInt64 {
    let answer = try await ask(subject(key), value, headers: headers)
    return try JetStreamAnswers.decode(JetStreamAnswers.Written.self, answer).seq
  }
}
