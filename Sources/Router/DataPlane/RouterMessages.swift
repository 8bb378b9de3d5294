import WireProtocol

/// The messages that the Router adds to the engine's events (`docs/http-and-websocket.md`).

/// First on every WebSocket, and again when the engine has come back. The field `queue` is added as it was encoded
/// for all (`TextMessage`).
struct SessionStateMessage: Encodable {
  let type = "session"
  var session: SessionSnapshot
  var engine: EngineStatus
}

/// The queue has changed, or was asked for.
struct QueueMessage: Encodable {
  let type = "queue"
  var sessionID: SessionID
  var requestID: String?
  /// nil where it is added as it was encoded for all (`TextMessage`).
  var queue: QueueView?

  enum CodingKeys: String, CodingKey {
    case type, queue
    case sessionID = "session_id"
    case requestID = "request_id"
  }
}

extension TextMessage {
  static func session(_ session: RoutedSession, engine: EngineStatus) -> TextMessage {
    TextMessage(
      JSON.encode(SessionStateMessage(session: session.snapshot, engine: engine)), adding: "queue",
      session.encodedQueue.json, sharedBy: session.listenerCount)
  }

  static func queue(_ queue: EncodedQueue, of session: RoutedSession, requestID: String?) -> TextMessage {
    TextMessage(
      JSON.encode(QueueMessage(sessionID: session.id, requestID: requestID)), adding: "queue", queue.json,
      sharedBy: session.listenerCount)
  }
}

/// What has played.
struct HistoryMessage: Encodable {
  let type = "history"
  var sessionID: SessionID
  var requestID: String?
  var history: HistoryView

  private enum Key: String, CodingKey {
    case type
    case sessionID = "session_id"
    case requestID = "request_id"
  }

  func encode(to encoder: any Encoder) throws {
    try history.encode(to: encoder)
    var fields = encoder.container(keyedBy: Key.self)
    try fields.encode(type, forKey: .type)
    try fields.encode(sessionID, forKey: .sessionID)
    try fields.encodeIfPresent(requestID, forKey: .requestID)
  }
}

/// The connection to the engine was lost or restored.
struct EngineStatusMessage: Encodable {
  let type = "engine"
  var engine: EngineStatus
}

/// Answers `ping`.
struct PongMessage: Encodable {
  let type = "pong"
  var requestID: String?
  var t: Double
  /// `CLOCK_MONOTONIC`.
  var nowNanoseconds: UInt64

  enum CodingKeys: String, CodingKey {
    case type, t
    case requestID = "request_id"
    case nowNanoseconds = "now_ns"
  }
}
