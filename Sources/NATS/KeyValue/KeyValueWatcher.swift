import NIOCore

/// What a watch tells.
public enum KeyValueWatchEvent: Sendable, Equatable {
  /// A key was written or deleted.
  case entry(KeyValueEntry)
  /// All that was there has been told. Comes once.
  case current
}

/// Follows a bucket through a consumer of JetStream, and makes a new one where something is missing: after a break of the
/// connection, a gap in the consumer's count, or three seconds without its heartbeat. Confined to the loop.
final class KeyValueWatcher {
  private let connection: Connection
  private let client: NATSClient
  private let stream: String
  private let prefix: String
  private let subject: String
  private let withValues: Bool
  /// Told of each consumer that could not be made; another is tried.
  private let onFailure: (KeyValueError) -> Void
  private let onEvent: (KeyValueWatchEvent) -> Void
  private let observerID: UInt64
  private var isStopped = false
  private var isCurrent = false
  /// The last message of the stream that was told.
  private var streamSequence: UInt64 = 0
  /// The consumer at hand: its subscription, and how many of its messages came.
  private var consumer: (id: UInt64, received: UInt64)?
  private var lastHeard = NIODeadline.now()

  init(
    connection: Connection, client: NATSClient, stream: String, prefix: String, subject: String,
    withValues: Bool,
    onFailure: @escaping (KeyValueError) -> Void, _ onEvent: @escaping (KeyValueWatchEvent) -> Void
  ) {
    self.connection = connection
    self.client = client
    self.stream = stream
    self.prefix = prefix
    self.subject = subject
    self.withValues = withValues
    self.onFailure = onFailure
    self.onEvent = onEvent
    observerID = client.newID()
  }

  func start() {
    connection.observe(observerID) { [weak self] state in
      guard let self else { return }
      if case .connected = state { begin() } else { end() }
    }
    lookLater()
  }

  func stop() {
    isStopped = true
    connection.endObserving(observerID)
    end()
  }

  private static let patience = TimeAmount.seconds(3)

  /// Sees once a second whether the consumer still lives.
  private func lookLater() {
    connection.eventLoop.assumeIsolated().scheduleTask(in: .seconds(1)) { [weak self] in
      guard let self, !isStopped else { return }
      if client.isConnected, NIODeadline.now() - lastHeard > Self.patience { begin() }
      lookLater()
    }
  }

  private func end() {
    if let consumer { connection.unsubscribe(consumer.id) }
    consumer = nil
  }

  /// Makes a consumer that gives what comes after what was told.
  private func begin() {
    end()
    guard !isStopped else { return }
    lastHeard = .now()
    let id = client.newID()
    // Two tokens behind the client's own: no answer to a request comes here.
    let inbox = "\(client.inbox)watch.\(id)"
    consumer = (id, 0)
    connection.subscribe(id, to: inbox, queue: nil, connection: nil) { [weak self] in self?.received($0, id) }
    let isFirst = streamSequence == 0
    let question = JetStreamQuestions.Consumer(
      streamName: stream,
      config: .init(
        deliverSubject: inbox, filterSubject: subject,
        deliverPolicy: isFirst ? "last_per_subject" : "by_start_sequence",
        optStartSeq: isFirst ? nil : streamSequence + 1, headersOnly: withValues ? nil : true))
    guard let json = try? JetStreamQuestions.encode(question) else { return }
    connection.request(
      json, to: "$JS.API.CONSUMER.CREATE.\(stream)", headers: [:], timeout: Self.patience
    ) { [weak self] in self?.made($0, id) }
  }

  private func made(_ answer: PendingReplies.Answer, _ id: UInt64) {
    guard consumer?.id == id else { return }
    let made: JetStreamAnswers.Consumer
    do throws(KeyValueError) {
      made = try JetStreamAnswers.decode(
        JetStreamAnswers.Consumer.self, answer.mapError(KeyValueError.init).get())
    } catch { return onFailure(error) }
    lastHeard = .now()
    if made.delivered.streamSeq < streamSequence, consumer?.received == 0 {
      // The stream has less than was told: it is another one of the same name.
      streamSequence = 0
      return begin()
    }
    if made.numPending == 0, consumer?.received == 0 { becameCurrent() }
  }

  private func received(_ message: NATSMessage, _ id: UInt64) {
    guard consumer?.id == id else { return }
    lastHeard = .now()
    let headers = message.headers
    if headers.status != nil { return controlled(message, headers) }
    guard let place = message.reply.flatMap(DeliveryPlace.init), let received = consumer?.received else {
      return
    }
    guard place.consumerSequence == received + 1 else { return begin() }
    consumer?.received = received + 1
    streamSequence = place.streamSequence
    let subject = message.subject
    guard subject.hasPrefix(prefix) else { return }
    onEvent(
      .entry(
        KeyValueEntry(
          key: String(subject.dropFirst(prefix.count)), revision: place.streamSequence,
          value: KeyValueBucket.isDeletion(headers) ? nil : message.payload)))
    if place.pending == 0 { becameCurrent() }
  }

  /// A heartbeat, which says how many messages were sent, or a question whether we have come so far.
  private func controlled(_ message: NATSMessage, _ headers: NATSHeaders) {
    if let reply = message.reply { client.publish(ByteBuffer(), to: reply) }
    if let stalled = headers["Nats-Consumer-Stalled"] { client.publish(ByteBuffer(), to: stalled) }
    if let last = headers["Nats-Last-Consumer"].flatMap(UInt64.init), last != consumer?.received { begin() }
  }

  private func becameCurrent() {
    guard !isCurrent else { return }
    isCurrent = true
    onEvent(.current)
  }
}
