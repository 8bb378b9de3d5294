import WireProtocol

/// What a client asks of the Router, over WebSocket or REST: the engine's commands, and the Router's own.
package struct ClientCommand: Sendable, Equatable {
  /// The client's own, repeated by the answer.
  package var requestID: String?
  package var action: Action

  package enum Action: Sendable, Equatable {
    case engine(EngineCommand.Action)
    case queue(SessionID, QueueChange)
    /// `t`, sent back.
    case ping(Double)
  }

  package enum QueueChange: Sendable, Equatable {
    case add(url: String)
    case remove(id: String)
    case clear
    case show
    case skip
  }

  package init(requestID: String? = nil, _ action: Action) {
    self.requestID = requestID
    self.action = action
  }

  /// Reads one command.
  ///
  /// - Parameters:
  ///   - json: one JSON object.
  ///   - type: the command's type where the door gives it.
  ///   - sessionID: the door's own session; an object that names another is refused.
  package static func decode(
    _ json: [UInt8], type: String? = nil, sessionID: SessionID
  ) throws(Refusal) -> ClientCommand {
    let fields: Fields
    do {
      fields = try JSON.decode(Fields.self, from: json)
    } catch {
      let requestID = (try? JSON.decode(Envelope.self, from: json))?.requestID
      throw Refusal(ErrorReport(decoding: error), requestID: requestID)
    }
    if let named = fields.sessionID ?? fields.channelID, named != sessionID.description {
      throw Refusal(
        ErrorReport(
          .invalidCommand, "the command is for the session \(named.debugDescription), here is \(sessionID)",
          hint: "leave session_id out", stage: .command),
        requestID: fields.requestID)
    }
    if let action = try routerAction(type ?? fields.type, fields, sessionID) {
      return ClientCommand(requestID: fields.requestID, action)
    }
    do {
      let command = try EngineCommand.decode(json, type: type, sessionID: sessionID)
      guard case .artwork = command.action else {
        return ClientCommand(requestID: command.requestID, .engine(command.action))
      }
    } catch {
      throw Refusal(error.report, requestID: error.requestID)
    }
    throw Refusal(
      ErrorReport(
        .invalidCommand, "a cover comes over HTTP alone", hint: "GET /artwork?url=media:…", stage: .command),
      requestID: fields.requestID)
  }

  /// What an answer needs even where another field is wrong.
  private struct Envelope: Decodable {
    var requestID: String?

    enum CodingKeys: String, CodingKey {
      case requestID = "request_id"
    }
  }

  /// Every field of the Router's own commands; each command takes its own.
  private struct Fields: Decodable {
    var type: String?
    var requestID: String?
    var sessionID: String?
    var channelID: String?
    var url: String?
    var id: String?
    var t: Double?

    enum CodingKeys: String, CodingKey {
      case type, url, id, t
      case requestID = "request_id"
      case sessionID = "session_id"
      case channelID = "channel_id"
    }
  }

  private static func routerAction(
    _ type: String?, _ fields: Fields, _ sessionID: SessionID
  ) throws(Refusal) -> Action? {
    func field<Value>(_ name: String, _ value: Value?) throws(Refusal) -> Value {
      if let value { return value }
      throw Refusal(
        ErrorReport(
          .invalidCommand, "the field \(name) is missing",
          hint: "docs/http-and-websocket.md lists the fields", stage: .command),
        requestID: fields.requestID)
    }
    switch type {
    case "queue_add": return .queue(sessionID, .add(url: try field("url", fields.url)))
    case "queue_remove": return .queue(sessionID, .remove(id: try field("id", fields.id)))
    case "queue_clear": return .queue(sessionID, .clear)
    case "queue": return .queue(sessionID, .show)
    case "skip": return .queue(sessionID, .skip)
    case "ping": return .ping(try field("t", fields.t))
    default: return nil
    }
  }
}
