import NIOCore

/// What a watch tells.
public enum KeyValueWatchEvent: Sendable, Equatable {
  /// A key was written or deleted.
  case entry(KeyValueEntry)
  /// All that was there has been told. Comes once.
  case current
}

/// Follows a bucket through a consumer of JetStream, and makes a new one where something is missing: after a break of the
/// connection, a gap in the consumer's count, three seconds without its heartbeat, or where it does not give what the
/// stream's leader has. Confined to the loop.
///
/// A consumer lives on one of the servers that keep the stream, as JetStream chooses by lot: one that is dead and not yet
/// known to be, or one whose copy lags behind and which sends heartbeats as if nothing were written. And none is made while
/// the cluster chooses who leads it, though the stream has its leader. So what a consumer does not give is read from the
/// leader, one message after another.
final class KeyValueWatcher {
  /// The consumer at hand.
  private struct Consumer {
    let id: UInt64
    /// How many of its messages came.
    var receivedCount: UInt64 = 0
    /// When the last of them came, or it was made.
    var progressedAt = NIODeadline.now()
    var isMade = false
    /// Whether the stream is known to be the one that was followed before.
    var isIdentified = false
    /// Whether the leader had something that the consumer has not given since.
    var misses = false
    var askedAt = NIODeadline.now()
    var isAsking = false
  }

  private let connection: Connection
  private let client: NATSClient
  private let stream: String
  private let prefix: String
  private let subject: String
  private let withValues: Bool
  private let withHistory: Bool
  /// Told of each consumer that could not be made; another is tried.
  private let onFailure: (KeyValueError) -> Void
  private let onEvent: (KeyValueWatchEvent) -> Void
  private let observerID: UInt64
  private var isStopped = false
  private var isCurrent = false
  /// The last message of the stream that was told.
  private var streamSequence: UInt64 = 0
  /// When the stream was made.
  private var created: String?
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
      if case .connected = state { begin() } else { end() }
    }
    lookLater()
  }

  func stop() {
    isStopped = true
    connection.endObserving(observerID)
    end()
  }

  // MARK: The consumer

  /// Without a heartbeat, or the answer to a question.
  private static let patience = TimeAmount.seconds(3)
  /// How long a consumer is silent before the leader is asked first, and between two questions.
  private static let silence = TimeAmount.seconds(1)
  private static let questionInterval = TimeAmount.seconds(5)

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
    consumer = Consumer(id: id)
    connection.subscribe(id, to: inbox, queue: nil, connection: nil) { [weak self] in self?.received($0, id) }
    let isFirst = streamSequence == 0
    let question = JetStreamQuestions.Consumer(
      streamName: stream,
      config: .init(
        deliverSubject: inbox, filterSubject: subject,
        deliverPolicy: !isFirst ? "by_start_sequence" : withHistory ? "all" : "last_per_subject",
        optStartSeq: isFirst ? nil : streamSequence + 1, headersOnly: withValues ? nil : true))
    ask("CONSUMER.CREATE", try? JetStreamQuestions.encode(question), JetStreamAnswers.Consumer.self, id) {
      [weak self] in self?.made($0)
    }
  }

  private func made(_ answer: Result<JetStreamAnswers.Consumer, KeyValueError>) {
    switch answer {
    case .failure(let error):
      // At the next look, another.
      lastHeard = .now() - Self.patience
      onFailure(error)
    case .success(let made):
      lastHeard = .now()
      consumer?.isMade = true
      consumer?.progressedAt = .now()
      // One that goes on may go on with another stream of the same name.
      if streamSequence > 0 { identify() }
      if made.numPending == 0, consumer?.receivedCount == 0 { becameCurrent() }
    }
  }

  private func received(_ message: NATSMessage, _ id: UInt64) {
    guard let consumer, consumer.id == id else { return }
    lastHeard = .now()
    let headers = message.headers
    if headers.status != nil { return controlled(message, headers) }
    guard let place = message.reply.flatMap(DeliveryPlace.init) else { return }
    guard place.consumerSequence == consumer.receivedCount + 1 else { return begin() }
    self.consumer?.receivedCount += 1
    self.consumer?.progressedAt = .now()
    self.consumer?.misses = false
    let subject = message.subject
    if subject.hasPrefix(prefix) {
      tell(
        KeyValueEntry(
          key: String(subject.dropFirst(prefix.count)), revision: place.streamSequence,
          value: KeyValueBucket.isDeletion(headers) ? nil : message.payload))
    }
    if place.pending == 0 { becameCurrent() }
  }

  /// A heartbeat, which says how many messages were sent, or a question whether we have come so far.
  private func controlled(_ message: NATSMessage, _ headers: NATSHeaders) {
    if let reply = message.reply { client.publish(ByteBuffer(), to: reply) }
    if let stalled = headers["Nats-Consumer-Stalled"] { client.publish(ByteBuffer(), to: stalled) }
    if let last = headers["Nats-Last-Consumer"].flatMap(UInt64.init), last != consumer?.receivedCount {
      begin()
    }
  }

  /// Tells what was not told before: of a copy that lags behind, or of the leader, it may come twice.
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

  // MARK: Whether it gives everything

  /// Sees once a second whether the consumer still lives, and gives what there is.
  private func lookLater() {
    connection.eventLoop.assumeIsolated().scheduleTask(in: .seconds(1)) { [weak self] in
      guard let self, !isStopped else { return }
      if client.isConnected { look() }
      lookLater()
    }
  }

  private func look() {
    let now = NIODeadline.now()
    guard let consumer, now - lastHeard <= Self.patience else { return begin() }
    guard !consumer.isAsking else { return }
    guard consumer.isMade else { return readFromLeader() }
    if !consumer.isIdentified { return identify() }
    guard now - consumer.progressedAt >= Self.silence else { return }
    if consumer.misses { return begin() }
    if consumer.askedAt <= consumer.progressedAt || now - consumer.askedAt >= Self.questionInterval {
      readFromLeader()
    }
  }

  /// Asks the leader which stream it is.
  private func identify() {
    guard let id = consumer?.id else { return }
    consumer?.isAsking = true
    let known = streamSequence
    ask("STREAM.INFO", ByteBuffer(), JetStreamAnswers.Stream.self, id) { [weak self] answer in
      guard let self else { return }
      consumer?.isAsking = false
      guard case .success(let stream) = answer else { return }
      // Or it has lost its end, with the machine's power or for an older copy.
      let isOther = created.map { $0 != stream.created } == true || stream.state.lastSeq < known
      created = stream.created
      consumer?.isIdentified = true
      guard isOther else { return }
      streamSequence = 0
      begin()
    }
  }

  /// Reads what comes after what was told, until there is no more.
  private func readFromLeader() {
    guard let id = consumer?.id else { return }
    consumer?.isAsking = true
    consumer?.askedAt = .now()
    let question = try? JetStreamQuestions.encode(
      JetStreamQuestions.NextMessage(nextBySubj: subject, seq: streamSequence + 1))
    ask("STREAM.MSG.GET", question, JetStreamAnswers.Kept.self, id) { [weak self] answer in
      guard let self else { return }
      consumer?.isAsking = false
      switch answer {
      case .success(let kept):
        consumer?.misses = true
        tell(KeyValueEntry(kept.message, prefix: prefix))
        readFromLeader()
      case .failure(.rejected(code: KeyValueBucket.noMessageFound, _)): becameCurrent()
      case .failure: break
      }
    }
  }

  /// Asks JetStream something of the stream. The answer is left out where the consumer is another by then.
  private func ask<Answer: Decodable>(
    _ what: String, _ question: ByteBuffer?, _ type: Answer.Type, _ id: UInt64,
    then: @escaping (Result<Answer, KeyValueError>) -> Void
  ) {
    guard let question else { return }
    connection.request(question, to: "$JS.API.\(what).\(stream)", headers: [:], timeout: Self.patience) {
      [weak self] answer in
      guard let self, consumer?.id == id else { return }
      do throws(KeyValueError) {
        then(.success(try JetStreamAnswers.decode(type, answer.mapError(KeyValueError.init).get())))
      } catch { then(.failure(error)) }
    }
  }
}
