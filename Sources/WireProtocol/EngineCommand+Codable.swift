#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

extension EngineCommand {
  /// Reads one command.
  ///
  /// - Parameters:
  ///   - json: one JSON object.
  ///   - type: the command's type, where the endpoint gives it (an HTTP path) and the object does not.
  ///   - sessionID: the session, where the endpoint gives it.
  /// - Throws: `CommandError`, which names the field that was wrong and keeps the `request_id` where
  ///   there was one, so that the requester can be answered.
  public static func decode(
    _ json: some Sequence<UInt8>, type: String? = nil, sessionID: SessionID? = nil
  ) throws(CommandError) -> EngineCommand {
    let decoder = JSONDecoder()
    let bytes = Array(json)
    let data = Data(bytes)
    let envelope: Envelope
    do {
      try CombiningMarks.check(json: bytes)
      envelope = try decoder.decode(Envelope.self, from: data)
    } catch {
      throw CommandError(report: ErrorReport(decoding: error))
    }
    do {
      decoder.userInfo[.commandType] = type
      decoder.userInfo[.commandSessionID] = sessionID
      return try decoder.decode(EngineCommand.self, from: data)
    } catch {
      throw CommandError(
        requestID: envelope.requestID,
        sessionID: sessionID ?? (envelope.sessionID ?? envelope.channelID).flatMap { try? SessionID($0) },
        report: ErrorReport(decoding: error))
    }
  }

  /// The command as one line with its newline.
  public func encodedLine() -> [UInt8] {
    // Encoding a value made of strings and finite numbers cannot fail.
    var line = (try? JSONEncoder().encode(self)).map(Array.init) ?? []
    line.append(UInt8(ascii: "\n"))
    return line
  }

  /// What an answer needs even where the rest of the command is wrong.
  private struct Envelope: Decodable {
    var requestID: String?
    var sessionID: String?
    var channelID: String?

    enum CodingKeys: String, CodingKey {
      case requestID = "request_id"
      case sessionID = "session_id"
      case channelID = "channel_id"
    }
  }
}

/// A command that was refused before it reached a session.
public struct CommandError: Error, Sendable, Equatable {
  public var requestID: String?
  public var sessionID: SessionID?
  public var report: ErrorReport

  public init(requestID: String? = nil, sessionID: SessionID? = nil, report: ErrorReport) {
    self.requestID = requestID
    self.sessionID = sessionID
    self.report = report
  }
}

extension CodingUserInfoKey {
  fileprivate static let commandType = CodingUserInfoKey(rawValue: "antiphon.type")!
  fileprivate static let commandSessionID = CodingUserInfoKey(rawValue: "antiphon.session")!
}

extension EngineCommand: Codable {
  private enum Key: String, CodingKey {
    case type, path, query, limit, url, tag, offset, volume, loop, paused, level, score
    case encoding, rendering, voices, client, epoch, milliseconds
    case requestID = "request_id"
    case sessionID = "session_id"
    case channelID = "channel_id"
    case startMilliseconds = "start_ms"
    case endMilliseconds = "end_ms"
    case positionMilliseconds = "position_ms"
    case bitrateKilobits = "bitrate_kbps"
    case dueNanoseconds = "due_ns"
  }

  public init(from decoder: any Decoder) throws {
    let fields = try decoder.container(keyedBy: Key.self)
    requestID = try fields.decodeIfPresent(String.self, forKey: .requestID)
    if let requestID, requestID.count > WireLimits.maximumRequestIDLength {
      throw ErrorReport.field("request_id", "has over \(WireLimits.maximumRequestIDLength) characters")
    }
    client = try fields.decodeIfPresent(String.self, forKey: .client)
    if let client, client.count > WireLimits.maximumClientLength {
      throw ErrorReport.field("client", "has over \(WireLimits.maximumClientLength) characters")
    }
    let type =
      try decoder.userInfo[.commandType] as? String ?? fields.decode(String.self, forKey: .type)
    action = try Self.action(type, decoder, fields)
    epoch = try Self.epoch(of: action, fields)
  }

  private static func action(
    _ type: String, _ decoder: any Decoder, _ fields: KeyedDecodingContainer<Key>
  ) throws -> Action {
    switch type {
    case "media": return .media(path: try fields.decodeIfPresent(String.self, forKey: .path) ?? "")
    case "artwork":
      return .artwork(url: try fields.decode(String.self, forKey: .url), offset: try offset(fields))
    case "resolve":
      // What is no whole number is no limit either.
      let limit = try fields.decodeIfPresent(Double.self, forKey: .limit).map { Int(exactly: $0) ?? 0 }
      return .resolve(try ResolveRequest(query: fields.decode(String.self, forKey: .query), limit: limit))
    case "render": return .render(try renderRequest(fields))
    case "burst":
      return .burst(try sessionID(decoder, fields), milliseconds: try burstMilliseconds(fields))
    default:
      let sessionAction = try sessionAction(type, fields)
      return .session(try sessionID(decoder, fields), sessionAction)
    }
  }

  private static func epoch(of action: Action, _ fields: KeyedDecodingContainer<Key>) throws -> UInt64? {
    let epoch = try wholeNumber(.epoch, fields)
    switch action {
    case .session, .burst: return epoch
    case .media, .artwork, .resolve, .render:
      guard epoch == nil else { throw ErrorReport.field("epoch", "is for commands of a session") }
      return nil
    }
  }

  private static func wholeNumber(_ key: Key, _ fields: KeyedDecodingContainer<Key>) throws -> UInt64? {
    do {
      return try fields.decodeIfPresent(UInt64.self, forKey: key)
    } catch let error as DecodingError {
      throw error
    } catch {
      // A number that does not fit has an error of Foundation's own.
      throw ErrorReport.field(key.rawValue, "is not a whole number from 0 to \(UInt64.max)")
    }
  }

  private static func sessionID(
    _ decoder: any Decoder, _ fields: KeyedDecodingContainer<Key>
  ) throws -> SessionID {
    if let given = decoder.userInfo[.commandSessionID] as? SessionID { return given }
    if fields.contains(.sessionID) { return try fields.decode(SessionID.self, forKey: .sessionID) }
    if fields.contains(.channelID) { return try fields.decode(SessionID.self, forKey: .channelID) }
    throw ErrorReport.field("session_id", "is missing")
  }

  private static func sessionAction(
    _ type: String, _ fields: KeyedDecodingContainer<Key>
  ) throws -> SessionAction {
    switch type {
    case "play": return .play(try playRequest(fields))
    case "prepare": return .prepare(try playRequest(fields))
    case "unprepare": return .unprepare
    case "pause": return .pause
    case "resume": return .resume
    case "stop": return .stop
    case "seek": return .seek(positionMilliseconds: try milliseconds(.positionMilliseconds, fields))
    case "volume": return .volume(try volume(fields.decode(Double.self, forKey: .level), field: "level"))
    case "perform": return .perform(try performedScore(fields))
    case "mute": return .mute(try roles(fields))
    case "status": return .status
    case "why": return .why
    case "stand_by":
      return .standBy(
        try playRequest(fields), positionMilliseconds: try milliseconds(.positionMilliseconds, fields))
    case "take_over":
      return .takeOver(
        positionMilliseconds: try milliseconds(.positionMilliseconds, fields),
        dueNanoseconds: try wholeNumber(.dueNanoseconds, fields))
    case "hand_over":
      return .handOver(positionMilliseconds: try milliseconds(.positionMilliseconds, fields))
    default:
      throw ErrorReport(
        .invalidCommand, "the command type is \(type.quoted)",
        hint:
          "use play, prepare, unprepare, pause, resume, stop, seek, volume, perform, mute, status, why, media, artwork, resolve, render or burst",
        stage: .command)
    }
  }

  private static func playRequest(_ fields: KeyedDecodingContainer<Key>) throws -> PlayRequest {
    let score = try fields.decodeIfPresent(Score.self, forKey: .score)?.checked()
    if score != nil, fields.contains(.url) { throw ErrorReport.field("url", "is given beside a score") }
    let start =
      fields.contains(.startMilliseconds) ? try milliseconds(.startMilliseconds, fields) : 0
    let end = fields.contains(.endMilliseconds) ? try milliseconds(.endMilliseconds, fields) : nil
    // At least one packet lies between them.
    if let end, end < start + WireLimits.packetDurationMilliseconds {
      throw ErrorReport.field("end_ms", "is \(end), not after start_ms \(start)")
    }
    return PlayRequest(
      url: try score == nil ? fields.decode(String.self, forKey: .url) : PlayRequest.scoreURL, score: score,
      startMilliseconds: start, endMilliseconds: end,
      volume: try volume(fields.decodeIfPresent(Double.self, forKey: .volume) ?? 1, field: "volume"),
      loop: try fields.decodeIfPresent(Bool.self, forKey: .loop) ?? false,
      paused: try fields.decodeIfPresent(Bool.self, forKey: .paused) ?? false,
      bitrateKilobits: try bitrate(fields), tag: try tag(fields))
  }

  private static func performedScore(_ fields: KeyedDecodingContainer<Key>) throws -> Score {
    let score = try fields.decode(Score.self, forKey: .score).checked()
    guard score.length != nil else { throw ErrorReport.field("score.length", "is missing") }
    return score
  }

  private static func roles(_ fields: KeyedDecodingContainer<Key>) throws -> [Score.Role] {
    try fields.decode([String].self, forKey: .voices).map { name in
      guard let role = Score.Role(rawValue: name) else {
        let names = Score.Role.allCases.map(\.rawValue).joined(separator: ", ")
        throw ErrorReport.field("voices", "names \(name.quoted); there are \(names)")
      }
      return role
    }
  }

  private static func renderRequest(_ fields: KeyedDecodingContainer<Key>) throws -> RenderRequest {
    guard !fields.contains(.rendering) else {
      return .piece(
        rendering: try fields.decode(String.self, forKey: .rendering), offset: try offset(fields))
    }
    let name = try fields.decodeIfPresent(String.self, forKey: .encoding) ?? RenderEncoding.opus.rawValue
    guard let encoding = RenderEncoding(rawValue: name) else {
      let names = RenderEncoding.allCases.map(\.rawValue).joined(separator: ", ")
      throw ErrorReport.field("encoding", "is \(name.quoted); there are \(names)")
    }
    return .score(try performedScore(fields), encoding)
  }

  private static func tag(_ fields: KeyedDecodingContainer<Key>) throws -> String? {
    let tag = try fields.decodeIfPresent(String.self, forKey: .tag)
    if let tag, tag.count > WireLimits.maximumTagLength {
      throw ErrorReport.field("tag", "has over \(WireLimits.maximumTagLength) characters")
    }
    return tag
  }

  private static func bitrate(_ fields: KeyedDecodingContainer<Key>) throws -> Int? {
    guard let value = try fields.decodeIfPresent(Double.self, forKey: .bitrateKilobits) else { return nil }
    guard let kilobits = Int(exactly: value), WireLimits.bitrateRange.contains(kilobits) else {
      let range = WireLimits.bitrateRange
      throw ErrorReport.field(
        Key.bitrateKilobits.rawValue,
        "is \(value), not a whole number from \(range.lowerBound) to \(range.upperBound)")
    }
    return kilobits
  }

  /// A position: not negative, and below the 49 days that a u32 of milliseconds holds.
  private static func milliseconds(_ key: Key, _ fields: KeyedDecodingContainer<Key>) throws -> Int {
    let value = try fields.decode(Double.self, forKey: key)
    guard value >= 0, value <= Double(UInt32.max) else {
      throw ErrorReport.field(key.rawValue, "is \(value), not 0 to \(UInt32.max)")
    }
    return Int(value)
  }

  private static func burstMilliseconds(_ fields: KeyedDecodingContainer<Key>) throws -> Int {
    let milliseconds = try fields.decode(Int.self, forKey: .milliseconds)
    guard WireLimits.burstMillisecondsRange.contains(milliseconds) else {
      let range = WireLimits.burstMillisecondsRange
      throw ErrorReport.field(
        "milliseconds", "is \(milliseconds), not \(range.lowerBound) to \(range.upperBound)")
    }
    return milliseconds
  }

  private static func offset(_ fields: KeyedDecodingContainer<Key>) throws -> Int {
    let offset = try fields.decodeIfPresent(Int.self, forKey: .offset) ?? 0
    guard offset >= 0 else { throw ErrorReport.field("offset", "is \(offset), below 0") }
    return offset
  }

  private static func volume(_ value: Double, field: String) throws -> Double {
    guard WireLimits.volumeRange.contains(value) else {
      throw ErrorReport.field(field, "is \(value), not 0 to 10")
    }
    return value
  }

  public func encode(to encoder: any Encoder) throws {
    var fields = encoder.container(keyedBy: Key.self)
    try fields.encodeIfPresent(requestID, forKey: .requestID)
    try fields.encodeIfPresent(client, forKey: .client)
    try fields.encodeIfPresent(epoch, forKey: .epoch)
    switch action {
    case .media(let path):
      try fields.encode("media", forKey: .type)
      try fields.encode(path, forKey: .path)
    case .artwork(let url, let offset):
      try fields.encode("artwork", forKey: .type)
      try fields.encode(url, forKey: .url)
      try fields.encode(offset, forKey: .offset)
    case .resolve(let request):
      try fields.encode("resolve", forKey: .type)
      try fields.encode(request.query, forKey: .query)
      try fields.encode(request.limit, forKey: .limit)
    case .render(.score(let score, let encoding)):
      try fields.encode("render", forKey: .type)
      try fields.encode(score, forKey: .score)
      try fields.encode(encoding, forKey: .encoding)
    case .render(.piece(let rendering, let offset)):
      try fields.encode("render", forKey: .type)
      try fields.encode(rendering, forKey: .rendering)
      try fields.encode(offset, forKey: .offset)
    case .burst(let sessionID, let milliseconds):
      try fields.encode("burst", forKey: .type)
      try fields.encode(sessionID, forKey: .sessionID)
      try fields.encode(milliseconds, forKey: .milliseconds)
    case .session(let sessionID, let action):
      try fields.encode(sessionID, forKey: .sessionID)
      try fields.encode(action.name, forKey: .type)
      switch action {
      case .play(let request), .prepare(let request): try Self.encode(request, into: &fields)
      case .standBy(let request, let position):
        try Self.encode(request, into: &fields)
        try fields.encode(position, forKey: .positionMilliseconds)
      case .takeOver(let position, let due):
        try fields.encode(position, forKey: .positionMilliseconds)
        try fields.encodeIfPresent(due, forKey: .dueNanoseconds)
      case .seek(let position), .handOver(let position):
        try fields.encode(position, forKey: .positionMilliseconds)
      case .volume(let level): try fields.encode(level, forKey: .level)
      case .perform(let score): try fields.encode(score, forKey: .score)
      case .mute(let roles): try fields.encode(roles, forKey: .voices)
      case .unprepare, .pause, .resume, .stop, .status, .why: break
      }
    }
  }

  private static func encode(
    _ request: PlayRequest, into fields: inout KeyedEncodingContainer<Key>
  ) throws {
    if let score = request.score {
      try fields.encode(score, forKey: .score)
    } else {
      try fields.encode(request.url, forKey: .url)
    }
    try fields.encode(request.startMilliseconds, forKey: .startMilliseconds)
    try fields.encodeIfPresent(request.endMilliseconds, forKey: .endMilliseconds)
    try fields.encode(request.volume, forKey: .volume)
    try fields.encode(request.loop, forKey: .loop)
    try fields.encode(request.paused, forKey: .paused)
    try fields.encodeIfPresent(request.bitrateKilobits, forKey: .bitrateKilobits)
    try fields.encodeIfPresent(request.tag, forKey: .tag)
  }
}
