import WireProtocol

/// What a client asks of the Router, over WebSocket or REST: the engine's commands, and the Router's own.
package struct ClientCommand: Sendable, Equatable {
  /// The client's own, repeated by the answer.
  package var requestID: String?
  package var idempotencyKey: IdempotencyKey?
  package var action: Action

  package enum Action: Sendable, Equatable {
    case engine(EngineCommand.Action)
    case queue(SessionID, QueueCommand)
    /// `t`, sent back.
    case ping(Double)
  }

  package init(requestID: String? = nil, idempotencyKey: IdempotencyKey? = nil, _ action: Action) {
    self.requestID = requestID
    self.idempotencyKey = idempotencyKey
    self.action = action
  }

  /// Reads one command.
  ///
  /// - Parameters:
  ///   - json: one JSON object.
  ///   - type: the command's type where the endpoint gives it.
  ///   - sessionID: the endpoint's own session; an object that names another is refused.
  ///   - entryID: the queue entry that the command is about, where the endpoint gives it.
  package static func decode(
    _ json: [UInt8], type: String? = nil, sessionID: SessionID, entryID: String? = nil
  ) throws(RequestError) -> ClientCommand {
    do {
      // Before any of it is compared, the ID of the requester among it.
      try CombiningMarks.check(json: json)
    } catch {
      throw RequestError(error)
    }
    let fields: Fields
    do {
      fields = try JSON.decode(Fields.self, from: json)
    } catch {
      let requestID = (try? JSON.decode(Envelope.self, from: json))?.requestID
      throw RequestError(ErrorReport(decoding: error), requestID: requestID)
    }
    do {
      try check(fields, sessionID)
      let key = try fields.idempotencyKey.map { text in try IdempotencyKey(text) }
      let action = try action(type ?? fields.type, json, sessionID, entryID)
      return ClientCommand(requestID: fields.requestID, idempotencyKey: key, action)
    } catch let requestError as RequestError {
      throw RequestError(requestError.report, status: requestError.status, requestID: fields.requestID)
    } catch let error as CommandError {
      throw RequestError(error.report, requestID: fields.requestID)
    } catch {
      throw RequestError(ErrorReport(decoding: error), requestID: fields.requestID)
    }
  }

  private static func check(_ fields: Fields, _ sessionID: SessionID) throws(RequestError) {
    if let named = fields.sessionID ?? fields.channelID, named != sessionID.description {
      throw RequestError(
        .invalidCommand, "the command is for the session \(named.quoted), here is \(sessionID)",
        hint: "leave session_id out")
    }
    if let id = fields.requestID, id.count > WireLimits.maximumRequestIDLength {
      throw RequestError(
        .invalidCommand, "the field request_id has over \(WireLimits.maximumRequestIDLength) characters")
    }
  }

  /// What an answer needs even where another field is wrong.
  private struct Envelope: Decodable {
    var requestID: String?

    enum CodingKeys: String, CodingKey {
      case requestID = "request_id"
    }
  }

  /// The fields of every command.
  private struct Fields: Decodable {
    var type: String?
    var requestID: String?
    var sessionID: String?
    var channelID: String?
    var idempotencyKey: String?

    enum CodingKeys: String, CodingKey {
      case type
      case requestID = "request_id"
      case sessionID = "session_id"
      case channelID = "channel_id"
      case idempotencyKey = "idempotency_key"
    }
  }

  private struct Ping: Decodable {
    var t: Double
  }

  private static func action(
    _ type: String?, _ json: [UInt8], _ id: SessionID, _ entryID: String?
  ) throws -> Action {
    if type == "ping" { return .ping(try JSON.decode(Ping.self, from: json).t) }
    if let command = try QueueCommand.decode(type, from: json, entryID: entryID) {
      return .queue(id, command)
    }
    let action = try EngineCommand.decode(json, type: type, sessionID: id).action
    switch action {
    case .artwork:
      throw RequestError(.invalidCommand, "a cover comes over HTTP alone", hint: "GET /artwork?url=media:…")
    case .render:
      throw RequestError(.invalidCommand, "the engine renders, over HTTP", hint: "POST /render to the engine")
    case .burst:
      throw RequestError(
        .invalidCommand, "what was just played comes on joining", hint: "connect with ?buffer_ms=")
    case .session(_, .standBy), .session(_, .takeOver), .session(_, .handOver):
      throw RequestError(
        .invalidCommand, "the Router moves sessions between engines itself",
        hint: "stop an engine, and its sessions move")
    default: return .engine(action)
    }
  }
}
