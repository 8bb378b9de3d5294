import Foundation
import NIOCore
import NIOPosix
import Synchronization

/// Speaks as a NATS server with one JetStream bucket `KV_x` whose consumers read from copies that may lag behind: how far,
/// the test says. A real cluster does this rarely.
final class LaggingServer: Sendable {
  /// When it makes a consumer that it is asked for.
  enum Creation {
    case atOnce
    /// When the leader is read next, before it answers that.
    case atRead
    case never
  }

  struct State {
    /// The value of each sequence, as the leader has them; the key is always `a`.
    var values: [Int: String] = [:]
    var created = "2026-01-01T00:00:00Z"
    /// How far each consumer's copy has come; the last is that of all that follow.
    var copies = [0]
    /// Whether a consumer has sent its messages before it answers, though they arrive later.
    var sendsBeforeAnswer = false
    var creation = Creation.atOnce
    var heldCreation: (question: String, reply: String)?
    /// How often the leader was read.
    var readCount = 0
    /// Where each consumer was to begin; 0 with the last value of each key.
    var beginnings: [Int] = []
    /// What the newest consumer has given.
    var givenCount = 0
    var consumer = (inbox: "", subscription: "")
    var subscriptions: [String: String] = [:]

    var lastSequence: Int { values.keys.max() ?? 0 }
  }

  let state = Mutex(State())
  private let listener = Mutex<(any Channel)?>(nil)
  private let connection = Mutex<(any Channel)?>(nil)

  var url: String { "nats://127.0.0.1:\(listener.withLock { $0?.localAddress?.port } ?? 0)" }

  /// - Parameter version: as which it greets.
  init(version: String = "2.10.26") async throws {
    let channel = try await ServerBootstrap(group: MultiThreadedEventLoopGroup.singleton.next())
      .childChannelInitializer { [self] channel in
        connection.withLock { $0 = channel }
        channel.writeAndFlush(
          ByteBuffer(
            string: #"INFO {"version":"\#(version)","max_payload":1048576,"headers":true}"# + "\r\n"),
          promise: nil)
        return channel.eventLoop.makeCompletedFuture {
          try channel.pipeline.syncOperations.addHandler(Reader(server: self))
          // On its loop: hundreds of tests may keep a task from running for longer than a client waits for a heartbeat.
          let beats = channel.eventLoop.scheduleRepeatedTask(
            initialDelay: .zero, delay: .milliseconds(300)
          ) { [weak self] _ in self?.beat() }
          channel.closeFuture.whenComplete { _ in beats.cancel() }
        }
      }
      .bind(host: "127.0.0.1", port: 0).get()
    listener.withLock { $0 = channel }
  }

  func end() { listener.withLock { $0?.close(promise: nil) } }

  /// Writes a value, which the newest consumer's copy gets or does not.
  func write(_ value: String, toCopy: Bool) {
    onLoop { [self] in
      let sequence = state.withLock { state in
        let sequence = state.lastSequence + 1
        state.values[sequence] = value
        return sequence
      }
      if toCopy { send(sequence) }
    }
  }

  /// The newest consumer gives a value.
  func give(_ sequence: Int) { onLoop { [self] in send(sequence) } }

  /// On the connection's loop no heartbeat comes between what is counted as given and the giving.
  private func onLoop(_ body: @escaping @Sendable () -> Void) {
    connection.withLock { $0 }?.eventLoop.execute(body)
  }

  /// The newest consumer says that it lives.
  private func beat() {
    let (given, consumer) = state.withLock { ($0.givenCount, $0.consumer) }
    guard !consumer.subscription.isEmpty else { return }
    let headers = "NATS/1.0 100 Idle Heartbeat\r\nNats-Last-Consumer: \(given)\r\n\r\n"
    let count = headers.utf8.count
    say("HMSG \(consumer.inbox) \(consumer.subscription) \(count) \(count)\r\n\(headers)\r\n")
  }

  private func send(_ sequence: Int, pending: Int = 0) {
    let line = state.withLock { state in
      state.givenCount += 1
      let reply = "$JS.ACK.KV_x.c.1.\(sequence).\(state.givenCount).1700000000.\(pending)"
      let value = state.values[sequence] ?? ""
      return "MSG $KV.x.a \(state.consumer.subscription) \(reply) \(value.utf8.count)\r\n\(value)\r\n"
    }
    say(line)
  }

  private func say(_ text: String) {
    connection.withLock { $0?.writeAndFlush(ByteBuffer(string: text), promise: nil) }
  }

  fileprivate func heard(_ words: [String], _ payload: String) {
    switch words.first {
    case "PING": say("PONG\r\n")
    case "SUB": state.withLock { $0.subscriptions[words[1]] = words[2] }
    case "PUB" where words.count == 4: asked(words[1], payload, reply: words[2])
    default: break
    }
  }

  private func asked(_ subject: String, _ question: String, reply: String) {
    switch subject {
    case "$JS.API.CONSUMER.CREATE.KV_x":
      switch state.withLock({ $0.creation }) {
      case .atOnce: create(question, reply)
      case .atRead: state.withLock { $0.heldCreation = (question, reply) }
      case .never: break
      }
    case "$JS.API.STREAM.INFO.KV_x":
      answer(
        reply, state.withLock { #"{"created":"\#($0.created)","state":{"last_seq":\#($0.lastSequence)}}"# })
    case "$JS.API.STREAM.MSG.GET.KV_x":
      let wanted = Int(field("seq", of: question).filter(\.isNumber)) ?? 0
      let (next, held) = state.withLock { state in
        state.readCount += 1
        return (
          state.values.filter { $0.key >= wanted }.min { $0.key < $1.key }, state.heldCreation.take()
        )
      }
      if let held { create(held.question, held.reply) }
      guard let next else { return answer(reply, #"{"error":{"code":404,"err_code":10037}}"#) }
      let data = Data(next.value.utf8).base64EncodedString()
      answer(reply, #"{"message":{"subject":"$KV.x.a","seq":\#(next.key),"data":"\#(data)"}}"#)
    default: break
    }
  }

  /// Answers come to the client's inbox, which is its first subscription.
  private func answer(_ reply: String, _ json: String) {
    say("MSG \(reply) 1 \(json.utf8.count)\r\n\(json)\r\n")
  }

  private func field(_ name: String, of question: String) -> String {
    question.range(of: "\"\(name)\":").map { String(question[$0.upperBound...].prefix { $0 != "," }) } ?? ""
  }

  private func create(_ question: String, _ reply: String) {
    let wanted = Int(field("opt_start_seq", of: question).filter(\.isNumber)) ?? 0
    // A value follows the name in quotes.
    let inbox = String(field("deliver_subject", of: question).filter { $0 != "\"" && $0 != "}" })
    let (sequences, sent) = state.withLock { state in
      let copy = state.copies.count > 1 ? state.copies.removeFirst() : state.copies[0]
      state.beginnings.append(wanted)
      state.givenCount = 0
      state.consumer = (inbox, state.subscriptions[inbox] ?? "")
      let there = state.values.keys.filter { $0 <= copy }.sorted()
      // As a server does it: beyond what its copy has it begins with the next.
      let first = wanted == 0 ? (there.last ?? 1) : min(wanted, (there.last ?? 0) + 1)
      let sequences = there.filter { $0 >= first }
      return (sequences, state.sendsBeforeAnswer ? sequences.count : 0)
    }
    answer(reply, #"{"delivered":{"consumer_seq":\#(sent)},"num_pending":\#(sequences.count - sent)}"#)
    for (index, sequence) in sequences.enumerated() { send(sequence, pending: sequences.count - 1 - index) }
  }
}

/// Cuts what a client says into lines and payloads.
private final class Reader: ChannelInboundHandler {
  typealias InboundIn = ByteBuffer
  private let server: LaggingServer
  private var text = ""

  init(server: LaggingServer) { self.server = server }

  func channelRead(context: ChannelHandlerContext, data: NIOAny) {
    text += String(buffer: unwrapInboundIn(data))
    while let end = text.range(of: "\r\n") {
      let words = text[..<end.lowerBound].split(separator: " ").map(String.init)
      let isPublication = words.first == "PUB" || words.first == "HPUB"
      let count = isPublication ? (words.last.flatMap { Int($0) } ?? 0) + 2 : 0
      let rest = text[end.upperBound...]
      guard rest.utf8.count >= count else { return }
      let payload = String(decoding: rest.utf8.prefix(max(0, count - 2)), as: UTF8.self)
      text = String(decoding: rest.utf8.dropFirst(count), as: UTF8.self)
      server.heard(words, payload)
    }
  }
}
