import WireProtocol

/// What a client asks of the Router, over WebSocket or REST: the engine's commands, and the Router's own.
package struct ClientCommand: Sendable, Equatable {
  /// The client's own, repeated by the answer.
  package var requestID: String?
  package var action: Action

  package enum Action: Sendable, Equatable {
    case engine(EngineCommand.Action)
    case queue(SessionID, QueueCommand)
    /// `t`, sent back.
    case ping(Double)
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
  ///   - entryID: the queue entry that the command is about, where the door gives it.
  package static func decode(
    _ json: [UInt8], type: String? = nil, sessionID: SessionID, entryID: String? = nil
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
    do {
      if let action = try routerAction(type ?? fields.type, json, sessionID, entryID) {
        return ClientCommand(requestID: fields.requestID, action)
      }
    } catch let refusal as Refusal {
      throw Refusal(refusal.report, status: refusal.status, requestID: fields.requestID)
    } catch {
      throw Refusal(ErrorReport(decoding: error), requestID: fields.requestID)
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

  /// The fields of every command.
  private struct Fields: Decodable {
    var type: String?
    var requestID: String?
    var sessionID: String?
    var channelID: String?

    enum CodingKeys: String, CodingKey {
      case type
      case requestID = "request_id"
      case sessionID = "session_id"
      case channelID = "channel_id"
    }
  }

  private struct Ping: Decodable {
    var t: Double
  }

  private static func routerAction(
    _ type: String?, _ json: [UInt8], _ id: SessionID, _ entryID: String?
  ) throws -> Action? {
    if type == "ping" { return .ping(try JSON.decode(Ping.self, from: json).t) }
    return try QueueCommand.decode(type, from: json, entryID: entryID).map { .queue(id, $0) }
  }
}
