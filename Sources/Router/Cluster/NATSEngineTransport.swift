import NATS
import NIOCore
import ServiceSupport
import WireProtocol

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// Attaches the Router to one engine through NATS. Confined to the data plane's loop, which is the client's.
final class NATSEngineTransport: EngineTransport {
  /// How long an engine has to answer an attachment request; then another is sent.
  private static let openSeconds: Int64 = 1
  private static let busyMilliseconds = 1_000

  let engine: String
  private let router: String
  private let client: NATSClient
  private var dataMilliseconds = Int.min
  /// Attached, or waiting for the engine's answer.
  private var connection: NATSEngineConnection?

  init(engine: String, router: String, client: NATSClient) {
    self.engine = engine
    self.router = router
    self.client = client
  }

  var place: String { "the engine \(engine)" }

  func connect(_ link: EngineLink) {
    let request = AttachmentRequest(router: router, attachment: .random(in: .min ... .max))
    let connection = NATSEngineConnection(
      request.attachment, to: ClusterSubject.toEngine(engine, from: router), client: client, link: link)
    self.connection = connection
    // Strings and numbers can always be encoded.
    let payload = ByteBuffer(bytes: (try? JSONEncoder().encode(request)) ?? Data())
    let context = NIOLoopBound((self, connection, link), eventLoop: client.eventLoop)
    client.request(payload, to: ClusterSubject.open(engine), timeout: .seconds(Self.openSeconds)) { result in
      let (transport, connection, link) = context.value
      switch result {
      case .success: connection.opened()
      case .failure(let error):
        // Only the answer was lost.
        guard !connection.isOpen else { return }
        if transport.connection === connection { transport.connection = nil }
        link.failedToConnect("cannot reach \(transport.place): \(error)")
      }
    }
  }

  /// Takes a message of the engine.
  ///
  /// - Parameter now: monotonic milliseconds.
  /// - Returns: false where its attachment has ended.
  func received(_ payload: ByteBuffer, now: Int) -> Bool {
    guard let frame = ClusterFrame(header: payload.readableBytesView) else { return true }
    guard let connection, connection.attachment == frame.attachment else { return frame.kind == .close }
    if frame.kind == .data { dataMilliseconds = now }
    connection.received(frame, payload)
    return true
  }

  /// Whether packets or events have arrived within the last second, so that more are due.
  func hasData(now: Int) -> Bool { now - Self.busyMilliseconds <= dataMilliseconds }

  /// Keeps the attachment alive. Called at each heartbeat of the engine.
  func keepAlive() { connection?.keepAlive() }

  /// Ends the attachment.
  func drop(_ reason: String) { connection?.lost(reason) }
}

/// One attachment.
private final class NATSEngineConnection: EngineConnection {
  let attachment: UInt64
  private let subject: String
  private let client: NATSClient
  private let link: EngineLink
  private lazy var stream = EngineStream(link: link)
  private var frames: ClusterAttachment
  private(set) var isOpen = false
  private var isClosed = false

  init(_ attachment: UInt64, to subject: String, client: NATSClient, link: EngineLink) {
    self.attachment = attachment
    self.subject = subject
    self.client = client
    self.link = link
    frames = ClusterAttachment(number: attachment)
  }

  /// The engine has answered, or already sends.
  func opened() {
    guard !isOpen, !isClosed else { return }
    isOpen = true
    link.opened(self)
  }

  func received(_ frame: ClusterFrame, _ payload: ByteBuffer) {
    guard !isClosed else { return }
    opened()
    switch frames.take(frame) {
    case .foreign: return
    case .gap: return lost("messages from the engine were lost")
    case .inOrder: break
    }
    switch frame.kind {
    case .idle: break
    case .close: lost("the engine ended the attachment")
    case .data:
      var bytes = payload
      bytes.moveReaderIndex(forwardBy: ClusterFrame.headerByteCount)
      if let failure = stream.take(bytes) { link.failed(failure, on: self) }
    }
  }

  func lost(_ reason: String) { link.closed(reason, on: self) }

  var isWritable: Bool { !isClosed && client.isConnected }

  func write(_ bytes: ByteBuffer) {
    if !send(.data, bytes) { lost("the NATS client did not accept a message for the engine") }
  }

  func keepAlive() {
    guard isOpen, !isClosed else { return }
    if !send(.idle) { lost("the NATS client did not accept a message for the engine") }
  }

  func close() {
    guard !isClosed else { return }
    _ = send(.close)
    isClosed = true
  }

  private func send(_ kind: ClusterFrame.Kind, _ bytes: ByteBuffer = ByteBuffer()) -> Bool {
    guard !isClosed else { return false }
    return client.publish(frames.next(kind), bytes, to: subject)
  }
}
