import NIOCore

/// An event of a watch.
public enum KeyValueWatchEvent: Sendable, Equatable {
  /// A key was written or deleted.
  case entry(KeyValueEntry)
  /// All existing entries have been reported. Sent once.
  case current
}

/// Follows a bucket through a JetStream consumer, and creates another one where messages may be missing: after a lost
/// connection, a gap in the consumer's sequence, three seconds without a heartbeat, or where it does not deliver what the
/// stream's leader has. Confined to the loop.
///
/// JetStream places a consumer on any server that has the stream: possibly one that is dead and not yet known to be, or a
/// replica that lags behind and sends heartbeats as if nothing were written. It creates none while the cluster elects its
/// leader, although the stream has one. So the watcher reads what a consumer does not deliver from the stream's leader, one
/// message after another.
final class KeyValueWatcher {
  /// The current consumer.
  private struct Consumer {
    let id: UInt64
    /// Messages that it has delivered.
    var receivedCount: UInt64 = 0
    /// When it delivered the last one, or was created.
    var progressedAt = NIODeadline.now()
    var isCreated = false
    /// Whether the stream is known to be the same as before.
    var isIdentified = false
    /// Whether the leader had a message that the consumer has not delivered since.
    var missesMessages = false
    var leaderReadAt = NIODeadline.now()
    var requestInFlight = false
  }

  private let connection: Connection
  private let client: NATSClient
  private let stream: String
  private let prefix: String
  private let subject: String
  private let withValues: Bool
  private let withHistory: Bool
  /// Called for each consumer that could not be created; another is tried.
  private let onFailure: (KeyValueError) -> Void
  private let onEvent: (KeyValueWatchEvent) -> Void
  private let observerID: UInt64
  private var isStopped = false
  private var isCurrent = false
  /// The stream sequence of the last reported message.
  private var streamSequence: UInt64 = 0
  /// The stream's creation time.
  private var streamCreatedAt: String?
  private var consumer: Consumer?
  private var lastHeard = NIODeadline.now()

  init(
    connection: Connection, client: NATSClient, stream: String, prefix: String, subject: String,
    withValues: Bool, withHistory: Bool,
    onFailure: @escaping (KeyValueError) -> Void, _ onEvent: @escaping (KeyValueWatchEvent) -> Void
  ) {
    self.connection = connection
    self.client = client
    self.stream = stream
    self.prefix = prefix
    self.subject = subject
    self.withValues = withValues
    self.withHistory = withHistory
    self.onFailure = onFailure
    self.onEvent = onEvent
    observerID = client.newID()
  }

  func start() {
    connection.observe(observerID) { [weak self] state in
      guard let self else { return }
      if case .connected = state { createConsumer() } else { end() }
    }
    scheduleCheck()
  }

  func stop() {
    isStopped = true
    connection.endObserving(observerID)
    end()
  }

  // MARK: The consumer

  /// For a heartbeat, or the response to a request.
  private static let responseTimeout = TimeAmount.seconds(3)
  /// How long a consumer is idle before the first read from the leader, and the interval of further reads.
  private static let idleInterval = TimeAmount.seconds(1)
  private static let leaderReadInterval = TimeAmount.seconds(5)

  private func end() {
    if let consumer { connection.unsubscribe(consumer.id) }
    consumer = nil
  }

  /// Creates a consumer that begins after the last reported message.
  private func createConsumer() {
    end()
    guard !isStopped else { return }
    lastHeard = .now()
    let id = client.newID()
    // Two tokens longer than the client's own: no response to a request is sent here.
    let inbox = "\(client.inbox)watch.\(id)"
    consumer = Consumer(id: id)
    connection.subscribe(id, to: inbox, queue: nil, connection: nil) { [weak self] in self?.received($0, id) }
    let isFirst = streamSequence == 0
    let request = JetStreamRequests.Consumer(
      streamName: stream,
      config: .init(
        deliverSubject: inbox, filterSubject: subject,
        deliverPolicy: !isFirst ? "by_start_sequence" : withHistory ? "all" : "last_per_subject",
        optStartSeq: isFirst ? nil : streamSequence + 1, headersOnly: withValues ? nil : true))
    ask("CONSUMER.CREATE", try? JetStreamRequests.encode(request), JetStreamResponses.Consumer.self, id) {
      [weak self] in self?.consumerCreated($0)
    }
  }

  private func consumerCreated(_ answer: Result<JetStreamResponses.Consumer, KeyValueError>) {
    switch answer {
    case .failure(let error):
      // The next check creates another.
      lastHeard = .now() - Self.responseTimeout
      onFailure(error)
    case .success(let response):
      lastHeard = .now()
      consumer?.isCreated = true
      consumer?.progressedAt = .now()
      // The stream may be another one of the same name.
      if streamSequence > 0 { identify() }
      if response.isEmpty { becameCurrent() }
    }
  }

  private func received(_ message: NATSMessage, _ id: UInt64) {
    guard let consumer, consumer.id == id else { return }
    lastHeard = .now()
    let headers = message.headers
    if headers.status != nil { return handleControlMessage(message, headers) }
    guard let place = message.reply.flatMap(DeliveryMetadata.init) else { return }
    guard place.consumerSequence == consumer.receivedCount + 1 else { return createConsumer() }
    self.consumer?.receivedCount += 1
    self.consumer?.progressedAt = .now()
    self.consumer?.missesMessages = false
    let subject = message.subject
    if subject.hasPrefix(prefix) {
      tell(
        KeyValueEntry(
          key: String(subject.dropFirst(prefix.count)), revision: place.streamSequence,
          value: KeyValueBucket.isDeletion(headers) ? nil : message.payload))
    }
    if place.pending == 0 { becameCurrent() }
  }

  /// A heartbeat, which has the consumer's last sequence, or a flow-control request.
  private func handleControlMessage(_ message: NATSMessage, _ headers: NATSHeaders) {
    if let reply = message.reply { client.publish(ByteBuffer(), to: reply) }
    if let stalled = headers["Nats-Consumer-Stalled"] { client.publish(ByteBuffer(), to: stalled) }
    if let last = headers["Nats-Last-Consumer"].flatMap(UInt64.init), last != consumer?.receivedCount {
      createConsumer()
    }
  }

  /// Reports what was not reported before: a lagging replica and the leader may give the same message.
  private func tell(_ entry: KeyValueEntry) {
    guard entry.revision > streamSequence else { return }
    streamSequence = entry.revision
    onEvent(.entry(entry))
  }

  private func becameCurrent() {
    guard !isCurrent else { return }
    isCurrent = true
    onEvent(.current)
  }

  // MARK: Checks

  /// Checks once a second whether the consumer is alive and complete.
  private func scheduleCheck() {
    connection.eventLoop.assumeIsolated().scheduleTask(in: .seconds(1)) { [weak self] in
      guard let self, !isStopped else { return }
      if client.isConnected { check() }
      scheduleCheck()
    }
  }

  private func check() {
    let now = NIODeadline.now()
    guard let consumer, now - lastHeard <= Self.responseTimeout else { return createConsumer() }
    guard !consumer.requestInFlight else { return }
    guard consumer.isCreated else { return readFromLeader() }
    if !consumer.isIdentified { return identify() }
    guard now - consumer.progressedAt >= Self.idleInterval else { return }
    if consumer.missesMessages { return createConsumer() }
    if consumer.leaderReadAt <= consumer.progressedAt
      || now - consumer.leaderReadAt >= Self.leaderReadInterval
    {
      readFromLeader()
    }
  }

  /// Reads the stream's creation time and last sequence.
  private func identify() {
    guard let id = consumer?.id else { return }
    consumer?.requestInFlight = true
    let known = streamSequence
    ask("STREAM.INFO", ByteBuffer(), JetStreamResponses.Stream.self, id) { [weak self] answer in
      guard let self else { return }
      consumer?.requestInFlight = false
      guard case .success(let stream) = answer else { return }
      // Or it has lost its last messages: after a power failure, or where an older copy was restored.
      let isOther = streamCreatedAt.map { $0 != stream.created } == true || stream.state.lastSeq < known
      streamCreatedAt = stream.created
      consumer?.isIdentified = true
      guard isOther else { return }
      streamSequence = 0
      createConsumer()
    }
  }

  /// Reads the messages after the last reported one, until there are no more.
  private func readFromLeader() {
    guard let id = consumer?.id else { return }
    consumer?.requestInFlight = true
    consumer?.leaderReadAt = .now()
    let request = try? JetStreamRequests.encode(
      JetStreamRequests.NextMessage(nextBySubj: subject, seq: streamSequence + 1))
    ask("STREAM.MSG.GET", request, JetStreamResponses.StoredMessage.self, id) { [weak self] answer in
      guard let self else { return }
      consumer?.requestInFlight = false
      switch answer {
      case .success(let kept):
        // The consumer may have delivered it before this response.
        if kept.message.seq > streamSequence { consumer?.missesMessages = true }
        tell(KeyValueEntry(kept.message, prefix: prefix))
        readFromLeader()
      case .failure(.rejected(code: KeyValueBucket.noMessageFound, _)): becameCurrent()
      case .failure: break
      }
    }
  }

  /// Sends a request about the stream. The response is ignored where the consumer has been replaced meanwhile.
  private func ask<Answer: Decodable>(
    _ what: String, _ request: ByteBuffer?, _ type: Answer.Type, _ id: UInt64,
    then: @escaping (Result<Answer, KeyValueError>) -> Void
  ) {
    guard let request else { return }
    connection.request(request, to: "$JS.API.\(what).\(stream)", headers: [:], timeout: Self.responseTimeout)
    {
      [weak self] answer in
      guard let self, consumer?.id == id else { return }
      do throws(KeyValueError) {
        then(.success(try JetStreamResponses.decode(type, answer.mapError(KeyValueError.init).get())))
      } catch { then(.failure(error)) }
    }
  }
}
