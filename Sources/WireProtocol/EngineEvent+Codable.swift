/// Events as flat JSON objects: `type`, `session_id`, `request_id`, and the fields of the type.
extension EngineEvent: Codable {
  private enum Key: String, CodingKey {
    case type, url, tag, reason, count, session, voices
    case sessionID = "session_id"
    case requestID = "request_id"
    case positionMilliseconds = "position_ms"
    case dueNanoseconds = "due_ns"
    case waitedMilliseconds = "waited_ms"
  }

  public func encode(to encoder: any Encoder) throws {
    var fields = encoder.container(keyedBy: Key.self)
    try fields.encode(body.name, forKey: .type)
    try fields.encodeIfPresent(sessionID, forKey: .sessionID)
    try fields.encodeIfPresent(requestID, forKey: .requestID)
    switch body {
    case .hello(let hello): try hello.encode(to: encoder)
    case .listed: break
    case .ready(let ready), .prepared(let ready): try ready.encode(to: encoder)
    case .why(let diagnosis): try diagnosis.encode(to: encoder)
    case .media(let listing): try listing.encode(to: encoder)
    case .artwork(let piece): try piece.encode(to: encoder)
    case .resolved(let resolution): try resolution.encode(to: encoder)
    case .performing(let performing): try performing.encode(to: encoder)
    case .muted(let roles): try fields.encode(roles, forKey: .voices)
    case .rendered(let piece): try piece.encode(to: encoder)
    case .error(let report): try report.encode(to: encoder)
    case .extracting(let url, let tag):
      try fields.encode(url, forKey: .url)
      try fields.encodeIfPresent(tag, forKey: .tag)
    case .playing(let anchor), .resumed(let anchor), .rebased(let anchor):
      try fields.encode(anchor.positionMilliseconds, forKey: .positionMilliseconds)
      try fields.encode(anchor.dueNanoseconds, forKey: .dueNanoseconds)
    case .burst(let anchor, let count):
      try fields.encode(anchor.positionMilliseconds, forKey: .positionMilliseconds)
      try fields.encode(anchor.dueNanoseconds, forKey: .dueNanoseconds)
      try fields.encode(count, forKey: .count)
    case .seeked(let position, let due):
      try fields.encode(position, forKey: .positionMilliseconds)
      try fields.encodeIfPresent(due, forKey: .dueNanoseconds)
    case .paused(let position), .buffering(let position):
      try fields.encode(position, forKey: .positionMilliseconds)
    case .stuck(let position, let waited):
      try fields.encode(position, forKey: .positionMilliseconds)
      try fields.encode(waited, forKey: .waitedMilliseconds)
    case .dropped(let count): try fields.encode(count, forKey: .count)
    case .metadata(let metadata): try metadata.encode(to: encoder)
    case .ended(let reason, let position):
      try fields.encode(reason, forKey: .reason)
      try fields.encode(position, forKey: .positionMilliseconds)
    case .status(let session): try fields.encode(session, forKey: .session)
    }
  }

  public init(from decoder: any Decoder) throws {
    let fields = try decoder.container(keyedBy: Key.self)
    sessionID = try fields.decodeIfPresent(SessionID.self, forKey: .sessionID)
    requestID = try fields.decodeIfPresent(String.self, forKey: .requestID)
    body = try Self.body(fields.decode(String.self, forKey: .type), fields, decoder)
  }

  private static func body(
    _ type: String, _ fields: KeyedDecodingContainer<Key>, _ decoder: any Decoder
  ) throws -> Body {
    func position() throws -> Int { try fields.decode(Int.self, forKey: .positionMilliseconds) }
    func anchor() throws -> Anchor {
      Anchor(
        positionMilliseconds: try position(),
        dueNanoseconds: try fields.decode(UInt64.self, forKey: .dueNanoseconds))
    }
    switch type {
    case "hello": return .hello(try Hello(from: decoder))
    case "extracting":
      return .extracting(
        url: try fields.decode(String.self, forKey: .url),
        tag: try fields.decodeIfPresent(String.self, forKey: .tag))
    case "ready": return .ready(try Ready(from: decoder))
    case "prepared": return .prepared(try Ready(from: decoder))
    case "why": return .why(try Diagnosis(from: decoder))
    case "playing": return .playing(try anchor())
    case "paused": return .paused(positionMilliseconds: try position())
    case "resumed": return .resumed(try anchor())
    case "seeked":
      return .seeked(
        positionMilliseconds: try position(),
        dueNanoseconds: try fields.decodeIfPresent(UInt64.self, forKey: .dueNanoseconds))
    case "rebased": return .rebased(try anchor())
    case "buffering": return .buffering(positionMilliseconds: try position())
    case "stuck":
      let waited = try fields.decode(Int.self, forKey: .waitedMilliseconds)
      return .stuck(positionMilliseconds: try position(), waitedMilliseconds: waited)
    case "metadata": return .metadata(try StreamMetadata(from: decoder))
    case "dropped": return .dropped(count: try fields.decode(Int.self, forKey: .count))
    case "ended":
      return .ended(
        try fields.decode(EndReason.self, forKey: .reason), positionMilliseconds: try position())
    case "status": return .status(try fields.decode(SessionSnapshot.self, forKey: .session))
    case "media": return .media(try MediaListing(from: decoder))
    case "artwork": return .artwork(try ArtworkPiece(from: decoder))
    case "resolved": return .resolved(try Resolution(from: decoder))
    case "performing": return .performing(try ScorePlacement(from: decoder))
    case "muted": return .muted(try fields.decode([Score.Role].self, forKey: .voices))
    case "rendered": return .rendered(try RenderedPiece(from: decoder))
    case "burst": return .burst(try anchor(), count: try fields.decode(Int.self, forKey: .count))
    case "listed": return .listed
    case "error": return .error(try ErrorReport(from: decoder))
    default:
      throw DecodingError.dataCorruptedError(
        forKey: .type, in: fields, debugDescription: "the event type is \(type.quoted)")
    }
  }
}
