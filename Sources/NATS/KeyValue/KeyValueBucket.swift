import NIOCore

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// The value of a key, or its deletion.
public struct KeyValueEntry: Sendable, Equatable {
  public let key: String
  /// Counts the bucket's writes; larger is later.
  public let revision: UInt64
  /// Nil where the key was deleted.
  public let value: ByteBuffer?

  package init(key: String, revision: UInt64, value: ByteBuffer?) {
    self.key = key
    self.revision = revision
    self.value = value
  }
}

/// A bucket of JetStream's key-value store, with conditional writes by revision. A value that expires (time to live) causes no
/// watch event.
public struct KeyValueBucket: Sendable {
  public struct Settings: Sendable {
    /// Replicas: 1, 3 or 5, and at most as many as the cluster has servers.
    public var replicas = 1
    /// How long a value lives after it was written; nil is unlimited.
    public var timeToLive: TimeAmount?
    /// In memory alone, where losing it with the servers does no harm.
    public var isInMemory = false
    /// Of all values; over it, a new one is rejected.
    public var maximumByteCount = 256 << 20
    /// Whether single values may be erased without a mark (`erase`).
    public var allowsErasing = false
    /// Values of a key that are kept, the last one included.
    public var history = 1
    /// Whether the oldest value goes where there is no room for a new one, which is rejected otherwise.
    public var discardsOldest = false

    public init() {}
  }

  /// Who is asked for a value.
  public enum Source: Sendable {
    /// Any server that keeps the bucket: quick, and maybe a moment behind. Where the bucket is not there, none answers.
    case anyReplica
    /// The server that decides writes. To be asked where the outcome of a write is not known.
    case leader
  }

  public let name: String
  public let client: NATSClient
  /// For an answer.
  public var timeout: TimeAmount

  var stream: String { "KV_\(name)" }
  private var prefix: String { "$KV.\(name)." }
  static let operation = "KV-Operation"

  /// - Parameter name: letters, digits, `-` and `_`.
  public init(_ name: String, client: NATSClient, timeout: TimeAmount = .seconds(5)) throws(KeyValueError) {
    guard !name.isEmpty, name.utf8.count <= 64, name.utf8.allSatisfy(Self.isLetterDigitOrDash) else {
      throw .invalidKey(name)
    }
    self.name = name
    self.client = client
    self.timeout = timeout
  }

  /// Creates the bucket if it does not exist. An existing one with other settings is an error (`rejected`), and so are several
  /// replicas at a server that does not keep them consistent (`outdatedServer`).
  public func create(_ settings: Settings = Settings()) async throws(KeyValueError) {
    try await create(settings, firstRevision: nil)
  }

  private func create(_ settings: Settings, firstRevision: UInt64?) async throws(KeyValueError) {
    if settings.replicas > 1, let version = await client.serverVersion, version < .minimumForReplicas {
      throw .outdatedServer(version.description)
    }
    var request = JetStreamRequests.Stream(
      name: stream, subjects: [prefix + ">"], numReplicas: settings.replicas,
      maxAge: settings.timeToLive?.nanoseconds ?? 0, maxBytes: settings.maximumByteCount,
      storage: settings.isInMemory ? "memory" : "file")
    request.denyDelete = !settings.allowsErasing
    request.maxMsgsPerSubject = settings.history
    request.discard = settings.discardsOldest ? "old" : "new"
    request.firstSeq = firstRevision
    let answer = try await ask("$JS.API.STREAM.CREATE.\(stream)", JetStreamRequests.encode(request))
    _ = try JetStreamResponses.decode(JetStreamResponses.Empty.self, answer)
  }

  /// Creates the bucket if it does not exist. An existing one keeps its settings, which an operator may have changed.
  ///
  /// - Parameter startsAtTime: whether a new bucket's revisions start at the time of its creation, in Unix milliseconds:
  ///   above those of a lost bucket that it replaces.
  public func createIfMissing(_ settings: Settings, startsAtTime: Bool = false) async throws(KeyValueError) {
    // Not of replicas: nats-server 2.10 leaves requests unanswered that create a stream with different first sequences at once.
    let firstRevision =
      startsAtTime && settings.replicas == 1 ? UInt64(Date().timeIntervalSince1970 * 1_000) : nil
    do throws(KeyValueError) {
      try await create(settings, firstRevision: firstRevision)
    } catch .rejected(code: Self.otherSettingsCode, _) {}
    if startsAtTime { try await startRevisionsAtCreationTime() }
  }

  /// JetStream's code for a stream of that name with other settings.
  private static let otherSettingsCode = 10_058

  /// Deletes the bucket and its values. A missing one is an error (`noBucket`).
  public func destroy() async throws(KeyValueError) {
    let answer = try await ask("$JS.API.STREAM.DELETE.\(stream)", ByteBuffer())
    _ = try JetStreamResponses.decode(JetStreamResponses.Empty.self, answer)
  }

  // MARK: Reading

  /// - Returns: what the key has; nil where it has nothing, or was deleted.
  public func get(_ key: String, from source: Source = .anyReplica) async throws(KeyValueError)
    -> KeyValueEntry?
  {
    let entry = try await last(key, from: source)
    return entry?.value == nil ? nil : entry
  }

  /// The value or delete marker with a revision; nil where it is gone.
  public func get(revision: UInt64, from source: Source = .anyReplica) async throws(KeyValueError)
    -> KeyValueEntry?
  {
    let request = try JetStreamRequests.encode(JetStreamRequests.MessageBySequence(seq: revision))
    return switch source {
    case .anyReplica: try entry(direct: await ask("$JS.API.DIRECT.GET.\(stream)", request))
    case .leader: try entry(kept: await ask("$JS.API.STREAM.MSG.GET.\(stream)", request))
    }
  }

  /// The last value or delete marker.
  public func last(_ key: String, from source: Source) async throws(KeyValueError) -> KeyValueEntry? {
    let subject = try subject(key)
    switch source {
    case .anyReplica:
      return try entry(direct: await ask("$JS.API.DIRECT.GET.\(stream).\(subject)", ByteBuffer()))
    case .leader:
      let request = try JetStreamRequests.encode(JetStreamRequests.LastMessage(lastBySubj: subject))
      return try entry(kept: await ask("$JS.API.STREAM.MSG.GET.\(stream)", request))
    }
  }

  /// - Parameter message: a replica's answer.
  private func entry(direct message: NATSMessage) throws(KeyValueError) -> KeyValueEntry? {
    let headers = message.headers
    if headers.status == 404 { return nil }
    guard let sequence = headers["Nats-Sequence"].flatMap(UInt64.init), let subject = headers["Nats-Subject"]
    else { throw .rejected(code: headers.status ?? 0, headers.statusText) }
    return KeyValueEntry(
      key: String(subject.dropFirst(prefix.count)), revision: sequence,
      value: Self.isDeletion(headers) ? nil : message.payload)
  }

  /// - Parameter message: the leader's answer.
  private func entry(kept message: NATSMessage) throws(KeyValueError) -> KeyValueEntry? {
    do throws(KeyValueError) {
      return KeyValueEntry(
        try JetStreamResponses.decode(JetStreamResponses.StoredMessage.self, message).message, prefix: prefix)
    } catch {
      if case .rejected(code: Self.noMessageFound, _) = error { return nil }
      throw error
    }
  }

  static let noMessageFound = 10_037

  /// All keys that have a value, in the order in which they were written. A replica is asked, which may be a moment behind.
  ///
  /// - Parameter filter: a key, with `*` for one token and `>` for all that follow.
  public func keys(_ filter: String = ">") async throws(KeyValueError) -> [String] {
    try await collect(filter, withValues: false).map(\.key)
  }

  /// All values, in the order in which they were written. As `keys`.
  public func entries(_ filter: String = ">") async throws(KeyValueError) -> [KeyValueEntry] {
    try await collect(filter, withValues: true)
  }

  private func collect(_ filter: String, withValues: Bool) async throws(KeyValueError) -> [KeyValueEntry] {
    let subject = try subject(filter, allowsWildcards: true)
    let (client, timeout, stream, prefix) = (client, timeout, stream, prefix)
    let result: Result<[KeyValueEntry], KeyValueError> = await withCheckedContinuation { continuation in
      client.withConnection { connection in
        let collector = KeyValueCollector(timeout: timeout, eventLoop: connection.eventLoop) {
          continuation.resume(returning: $0)
        }
        collector.collect(
          with: KeyValueWatcher(
            connection: connection, client: client, stream: stream, prefix: prefix, subject: subject,
            withValues: withValues, withHistory: false, onFailure: { collector.finish(.failure($0)) }
          ) { collector.received($0) })
      }
    }
    return try result.get()
  }

  /// Tells what is there, then `current`, then each write, in order and without gaps, on the loop. After a break it goes on
  /// where it was; of keys that were written several times in it, what is kept of that comes.
  ///
  /// - Parameter withHistory: whether all that is kept of a key is told, and not its last value alone.
  public func watch(
    _ filter: String = ">", withHistory: Bool = false,
    _ onEvent: @escaping @Sendable (KeyValueWatchEvent) -> Void
  ) throws(KeyValueError) -> NATSSubscription {
    let subject = try subject(filter, allowsWildcards: true)
    let (client, stream, prefix) = (client, stream, prefix)
    let id = client.newID()
    client.withConnection { connection in
      let watcher = KeyValueWatcher(
        connection: connection, client: client, stream: stream, prefix: prefix, subject: subject,
        withValues: true, withHistory: withHistory, onFailure: { _ in }, onEvent)
      connection.keep(watcher, id)
      watcher.start()
    }
    return NATSSubscription {
      client.withConnection { $0.release(id)?.stop() }
    }
  }

  /// Whether a message with these headers says that its key was deleted.
  static func isDeletion(_ headers: NATSHeaders) -> Bool {
    headers[Self.operation] == "DEL" || headers[Self.operation] == "PURGE"
  }

  func ask(
    _ subject: String, _ request: ByteBuffer, headers: NATSHeaders = [:]
  ) async throws(KeyValueError) -> NATSMessage {
    do throws(NATSError) {
      return try await client.request(request, to: subject, headers: headers, timeout: timeout)
    } catch { throw KeyValueError(error) }
  }

  func subject(_ key: String, allowsWildcards: Bool = false) throws(KeyValueError) -> String {
    let isKey = key.utf8.allSatisfy { byte in
      Self.isLetterDigitOrDash(byte) || "/=.".utf8.contains(byte)
        || allowsWildcards && "*>".utf8.contains(byte)
    }
    guard isKey, !key.isEmpty, key.first != ".", key.last != ".", !key.contains(".."), key.utf8.count <= 512
    else { throw .invalidKey(String(key.prefix(200))) }
    return prefix + key
  }

  private static func isLetterDigitOrDash(_ byte: UInt8) -> Bool {
    switch byte {
    case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
      UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"), UInt8(ascii: "_"):
      true
    default: false
    }
  }
}
