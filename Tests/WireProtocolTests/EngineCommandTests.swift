import Testing
import WireProtocol

@Suite struct EngineCommandTests {
  private func decode(_ json: String) throws -> EngineCommand { try EngineCommand.decode(Array(json.utf8)) }

  @Test func `a play has its defaults`() throws {
    let command = try decode(#"{"type":"play","session_id":"1","url":"media:a.flac"}"#)
    #expect(command == EngineCommand(try SessionID("1"), .play(PlayRequest(url: "media:a.flac"))))
  }

  @Test func `channel_id is the same as session_id`() throws {
    let command = try decode(#"{"type":"pause","channel_id":"123","request_id":"r"}"#)
    #expect(command == EngineCommand(try SessionID("123"), .pause, requestID: "r"))
  }

  @Test func `every command survives being written and read`() throws {
    let id = try SessionID("guild:1")
    let play = PlayRequest(
      url: "https://a/ü?b=c", startMilliseconds: 40, endMilliseconds: 90, volume: 0.5, loop: true,
      paused: true, bitrateKilobits: 96, tag: "17.r1-2")
    let actions: [EngineCommand.SessionAction] = [
      .play(play), .prepare(play), .standBy(play, positionMilliseconds: 400),
      .handOver(positionMilliseconds: 7),
      .takeOver(positionMilliseconds: 7, dueNanoseconds: .max),
      .takeOver(positionMilliseconds: 7, dueNanoseconds: nil),
      .unprepare, .why, .pause, .resume, .stop,
      .seek(positionMilliseconds: 1234),
      .volume(2), .status,
    ]
    for action in actions {
      let command = EngineCommand(id, action, requestID: "r1")
      let line = command.encodedLine()
      #expect(line.last == 0x0A && !line.dropLast().contains(0x0A))
      #expect(try EngineCommand.decode(line.dropLast()) == command)
    }
    let others: [EngineCommand.Action] = [
      .media(path: "folder"), .resolve(try ResolveRequest(query: "a song ü", limit: 50)),
      .burst(id, milliseconds: 5_000),
    ]
    for action in others {
      let command = EngineCommand(requestID: "r2", action: action)
      #expect(try EngineCommand.decode(command.encodedLine().dropLast()) == command)
    }
  }

  @Test(arguments: [0, 7, UInt64.max])
  func `an epoch survives with every command of a session`(epoch: UInt64) throws {
    let id = try SessionID("guild:1")
    let actions: [EngineCommand.Action] = [
      .session(id, .status), .session(id, .play(PlayRequest(url: "media:a"))), .burst(id, milliseconds: 20),
    ]
    for action in actions {
      let command = EngineCommand(requestID: "r", client: "c", epoch: epoch, action: action)
      let line = command.encodedLine().dropLast()
      #expect(String(decoding: line, as: UTF8.self).contains("\"epoch\":\(epoch)"))
      #expect(try EngineCommand.decode(line) == command)
    }
  }

  @Test func `a command without an epoch has none, and writes none`() throws {
    for json in [#"{"type":"stop","session_id":"1"}"#, #"{"type":"stop","session_id":"1","epoch":null}"#] {
      let command = try decode(json)
      #expect(try command == EngineCommand(SessionID("1"), .stop))
      #expect(!String(decoding: command.encodedLine(), as: UTF8.self).contains("epoch"))
    }
  }

  @Test(arguments: [
    ("query=a+song%20%2B&limit=5", "a song +", 5),
    ("limit=50&query=http%3A%2F%2Fa%2F%3Fb%3Dc%26d", "http://a/?b=c&d", 50),
    ("query=a=b", "a=b", 10),
  ])
  func `a query is read as forms write it`(text: String, query: String, limit: Int) throws {
    #expect(try ResolveRequest(httpQuery: text) == ResolveRequest(query: query, limit: limit))
  }

  @Test(arguments: [
    nil, "", "query", "query=", "limit=5", "query=a&limit=", "query=a&limit=x",
  ])
  func `a query that makes no sense is refused`(text: String?) {
    let error = #expect(throws: ErrorReport.self) { try ResolveRequest(httpQuery: text) }
    #expect(error?.code == .invalidCommand)
  }

  @Test(arguments: [
    ("", ErrorCode.invalidJSON, "JSON"),
    ("play", .invalidJSON, "JSON"),
    ("[]", .invalidJSON, "JSON"),
    ("\"x\"", .invalidJSON, "JSON"),
    ("{}", .invalidCommand, "type"),
    (#"{"type":"dance","session_id":"1"}"#, .invalidCommand, "dance"),
    (#"{"type":"pause"}"#, .invalidCommand, "session_id"),
    (#"{"type":"pause","session_id":"a b"}"#, .invalidSessionID, "session ID"),
    (#"{"type":"pause","session_id":"1234567890123456789012345"}"#, .invalidSessionID, "25 bytes"),
    (#"{"type":"pause","session_id":7}"#, .invalidCommand, "session_id"),
    (#"{"type":"play","session_id":"1"}"#, .invalidCommand, "url"),
    (#"{"type":"resolve"}"#, .invalidCommand, "query"),
    (#"{"type":"resolve","query":"  "}"#, .invalidCommand, "query"),
    (#"{"type":"resolve","query":"a","limit":0}"#, .invalidCommand, "limit"),
    (#"{"type":"resolve","query":"a","limit":51}"#, .invalidCommand, "limit"),
    (#"{"type":"resolve","query":"a","limit":1.5}"#, .invalidCommand, "limit"),
    (#"{"type":"play","session_id":"1","url":7}"#, .invalidCommand, "url"),
    (#"{"type":"play","session_id":"1","url":"a","volume":11}"#, .invalidCommand, "volume"),
    (#"{"type":"play","session_id":"1","url":"a","volume":-0.1}"#, .invalidCommand, "volume"),
    (#"{"type":"play","session_id":"1","url":"a","start_ms":-1}"#, .invalidCommand, "start_ms"),
    (#"{"type":"play","session_id":"1","url":"a","start_ms":80,"end_ms":99}"#, .invalidCommand, "end_ms"),
    (#"{"type":"prepare","session_id":"1"}"#, .invalidCommand, "url"),
    (#"{"type":"play","session_id":"1","url":"a","bitrate_kbps":7}"#, .invalidCommand, "bitrate_kbps"),
    (#"{"type":"play","session_id":"1","url":"a","bitrate_kbps":511}"#, .invalidCommand, "8 to 510"),
    (#"{"type":"play","session_id":"1","url":"a","bitrate_kbps":64.5}"#, .invalidCommand, "bitrate_kbps"),
    (#"{"type":"play","session_id":"1","url":"a","bitrate_kbps":"64"}"#, .invalidCommand, "bitrate_kbps"),
    (#"{"type":"play","session_id":"1","url":"a","bitrate_kbps":1e300}"#, .invalidCommand, "bitrate_kbps"),
    (#"{"type":"seek","session_id":"1"}"#, .invalidCommand, "position_ms"),
    (#"{"type":"seek","session_id":"1","position_ms":1e300}"#, .invalidCommand, "position_ms"),
    (#"{"type":"volume","session_id":"1","level":"loud"}"#, .invalidCommand, "level"),
    (#"{"type":"stop","session_id":"1","request_id":7}"#, .invalidCommand, "request_id"),
    (#"{"type":"stop","session_id":"1","epoch":-1}"#, .invalidCommand, "epoch is not a whole number from 0"),
    (#"{"type":"stop","session_id":"1","epoch":1.5}"#, .invalidCommand, "epoch is not a whole number from 0"),
    (
      #"{"type":"stop","session_id":"1","epoch":18446744073709551616}"#, .invalidCommand,
      "epoch is not a whole number from 0 to 18446744073709551615"
    ),
    (
      #"{"type":"burst","session_id":"1","milliseconds":20,"epoch":"7"}"#, .invalidCommand,
      "epoch is not a number"
    ),
    (#"{"type":"media","epoch":7}"#, .invalidCommand, "epoch is for commands of a session"),
    (#"{"type":"resolve","query":"a","epoch":7}"#, .invalidCommand, "epoch is for commands of a session"),
    (#"{"type":"artwork","url":"media:a","epoch":7}"#, .invalidCommand, "epoch is for commands of a session"),
  ])
  func `a wrong command is refused by name`(json: String, code: ErrorCode, named: String) {
    let error = #expect(throws: CommandError.self) { try decode(json) }
    #expect(error?.report.code == code)
    #expect(error?.report.message.contains(named) == true, "\(error?.report.message ?? "")")
  }

  @Test func `an error keeps what the answer needs`() {
    let error = #expect(throws: CommandError.self) {
      try decode(#"{"type":"play","session_id":"1","request_id":"r7"}"#)
    }
    #expect(error?.requestID == "r7")
    #expect(error?.sessionID == (try? SessionID("1")))
  }
}
