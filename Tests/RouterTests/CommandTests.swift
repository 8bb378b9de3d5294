import NIOCore
import RouterCore
import Testing
import WireProtocol

@Suite struct `A command of a client` {
  private let session: SessionID
  init() throws { session = try SessionID("7") }

  private func decode(_ json: String, type: String? = nil) throws(RequestError) -> ClientCommand {
    try ClientCommand.decode(Array(json.utf8), type: type, sessionID: session)
  }

  @Test func `is for the engine with the session of the connection`() throws {
    #expect(
      try decode(#"{"type":"seek","position_ms":1500,"request_id":"a"}"#)
        == ClientCommand(
          requestID: "a", .engine(.session(session, .seek(positionMilliseconds: 1_500)))))
    #expect(
      try decode(#"{"type":"pause","session_id":"7"}"#) == ClientCommand(.engine(.session(session, .pause))))
  }

  @Test func `takes its type from the path`() throws {
    #expect(
      try decode(#"{"level":0.5}"#, type: "volume")
        == ClientCommand(.engine(.session(session, .volume(0.5)))))
    #expect(try decode("{}", type: "skip") == ClientCommand(.queue(session, .skip)))
  }

  @Test(arguments: [
    (#"{"type":"queue_add","url":"media:a"}"#, QueueCommand.add([QueuedTrack(url: "media:a")], at: .end)),
    (
      #"{"type":"queue_add","url":"media:a","title":"A","next":true}"#,
      .add([QueuedTrack(url: "media:a", title: "A")], at: .index(0))
    ),
    (
      #"{"type":"queue_add","tracks":[{"url":"media:a"}],"position":3}"#,
      .add([QueuedTrack(url: "media:a")], at: .index(3))
    ),
    (#"{"type":"queue_add","query":"a song"}"#, .find("a song", at: .end)),
    (#"{"type":"queue_move","id":"3","position":0}"#, .move(id: "3", position: 0)),
    (#"{"type":"queue_loop","mode":"queue"}"#, .loop(.queue)),
    (#"{"type":"skip_to","id":"3"}"#, .skipTo(id: "3")), (#"{"type":"previous"}"#, .previous),
    (#"{"type":"quality","bitrate_kbps":96}"#, .quality(96)),
    (#"{"type":"quality","bitrate_kbps":null}"#, .quality(nil)),
    (#"{"type":"history"}"#, .history(limit: 100)), (#"{"type":"queue_shuffle"}"#, .shuffle),
    (#"{"type":"queue","offset":5,"limit":10}"#, .show(QueuePage(offset: 5, limit: 10))),
    (#"{"type":"queue_remove","id":"3"}"#, .remove(id: "3")), (#"{"type":"queue_clear"}"#, .clear),
    (#"{"type":"queue"}"#, .show(QueuePage())), (#"{"type":"skip"}"#, .skip),
  ])
  func `may be for the Router itself`(_ json: String, _ change: QueueCommand) throws {
    #expect(try decode(json) == ClientCommand(.queue(session, change)))
  }

  /// More in a row than Swift compares in any bearable time.
  private static let marks = String(repeating: "\u{301}", count: 1_000)

  @Test(
    arguments: [
      (#"{"type":"\#(marks)"}"#, ErrorCode.invalidJSON, nil), (#"{"\#(marks)":1}"#, .invalidJSON, nil),
      (#"{"type":"pause","session_id":"\#(marks)","request_id":"q"}"#, .invalidJSON, nil),
      ("[]", .invalidJSON, nil), ("{", .invalidJSON, nil), ("", .invalidJSON, nil),
      (#"{"request_id":"q"}"#, .invalidCommand, "q"),
      (#"{"type":"dance","request_id":"q"}"#, .invalidCommand, "q"),
      (#"{"type":"queue_add","request_id":"q"}"#, .invalidCommand, "q"),
      (#"{"type":"queue_add","url":"media:a","query":"b"}"#, .invalidCommand, nil),
      (#"{"type":"queue_add","tracks":[]}"#, .invalidCommand, nil),
      (#"{"type":"queue_add","tracks":[{"url":"file:a"}],"request_id":"q"}"#, .invalidSource, "q"),
      (#"{"type":"queue_add","url":"media:a","position":-1}"#, .invalidCommand, nil),
      (#"{"type":"queue_move","id":"1"}"#, .invalidCommand, nil),
      (#"{"type":"queue_move","id":"1","position":1.5}"#, .invalidCommand, nil),
      (#"{"type":"queue_loop","mode":"all"}"#, .invalidCommand, nil),
      (#"{"type":"quality"}"#, .invalidCommand, nil),
      (#"{"type":"quality","bitrate_kbps":1}"#, .invalidCommand, nil),
      (#"{"type":"queue","limit":101}"#, .invalidCommand, nil),
      (#"{"type":"history","limit":0}"#, .invalidCommand, nil),
      (#"{"type":"pause","session_id":"8","request_id":"q"}"#, .invalidCommand, "q"),
      (#"{"type":"pause","channel_id":"8"}"#, .invalidCommand, nil),
      (#"{"type":"ping","t":"x"}"#, .invalidCommand, nil),
    ] as [(String, ErrorCode, String?)])
  func `is refused with what is wrong and the ID of the requester`(
    _ json: String, _ code: ErrorCode, _ requestID: String?
  ) {
    let requestError = #expect(throws: RequestError.self) { try decode(json) }
    #expect(requestError?.report.code == code)
    #expect(requestError?.requestID == requestID)
  }
}

@Suite struct `Pending requests` {
  private let start = NIODeadline.uptimeNanoseconds(1_000_000_000_000)

  @Test func `keep requesters with the same ID of their own apart`() throws {
    var pending = PendingRequests<String>(prefix: "p")
    let ids = ["first", "second"].map { pending.add($0, now: start) }
    let requesters = try ids.reversed().map { id in
      let id = try #require(id)
      return pending.take(id)
    }
    #expect(requesters == ["second", "first"])
  }

  @Test func `answer once, and nobody for an ID of others`() throws {
    var pending = PendingRequests<Int>(prefix: "p")
    let added = pending.add(1, now: start)
    let id = try #require(added)
    #expect(id.hasPrefix("p-"))
    let requesters = ["other-1", id, id].map { pending.take($0) }
    #expect(requesters == [nil, 1, nil])
  }

  @Test func `expire after 45 s`() {
    var pending = PendingRequests<Int>(prefix: "p")
    _ = pending.add(1, now: start)
    _ = pending.add(2, now: start + .seconds(1))
    let expired = [44, 45].map { pending.takeExpired(now: start + .seconds($0)).map(\.waiter) }
    #expect(expired == [[], [1]])
    let rest = pending.takeAll().map(\.waiter)
    #expect(rest == [2])
  }

  @Test func `are limited`() {
    var pending = PendingRequests<Int>(prefix: "p")
    for number in 0..<RouterLimits.maximumPendingRequests { _ = pending.add(number, now: start) }
    #expect(pending.count == RouterLimits.maximumPendingRequests)
    let oneMore = pending.add(0, now: start)
    #expect(oneMore == nil)
  }
}

@Suite struct `Joining` {
  @Test(
    arguments: [
      ([], Subprotocol.opus), (["antiphon.timed.v1"], .timed),
      (["antiphon.opus.v1, antiphon.timed.v1"], .opus),
      (["chat, antiphon.timed.v1"], .timed), (["chat", "antiphon.opus.v1"], .opus), (["chat"], nil),
      (["antiphon.opus.v2"], nil),
    ] as [([String], Subprotocol?)])
  func `chooses the first subprotocol of the client that is known`(
    _ offers: [String], _ expected: Subprotocol?
  ) {
    #expect(Subprotocol.choose(offers) == expected)
  }

  @Test func `reads session and buffer`() throws {
    let request = try ListenRequest(
      webSocket: "/ws?session=a%3A1&buffer_ms=0", subprotocols: [], grant: .everything)
    #expect(request.sessionID == (try SessionID("a:1")))
    #expect(request.bufferMilliseconds == 0 && request.packetsPerMessage == 1)
    let page = try ListenRequest(
      webSocket: "/ws?session=a&frames=3", subprotocols: [Subprotocol.timed.rawValue], grant: .everything)
    #expect(page.packetsPerMessage == 3)
    #expect(
      try ListenRequest(file: "a.b.ogg", target: "/listen/a.b.ogg", grant: .everything).sessionID.description
        == "a.b")
    #expect(
      try ListenRequest(file: "a.ogg", target: "/listen/a.ogg", grant: .everything).bufferMilliseconds == 500)
  }

  @Test(arguments: [
    ("/ws", 400), ("/ws?session=", 400), ("/ws?session=a/b", 400), ("/ws?session=a&buffer_ms=5001", 400),
    ("/ws?session=a&buffer_ms=-1", 400), ("/ws?session=a&buffer_ms=x", 400),
    ("/ws?session=a&frames=0", 400), ("/ws?session=a&frames=6", 400), ("/ws?session=a&frames=2", 400),
  ])
  func `refuses what is out of range`(_ target: String, _ status: Int) {
    let requestError = #expect(throws: RequestError.self) {
      try ListenRequest(webSocket: target, subprotocols: [], grant: .everything)
    }
    #expect(requestError?.status == status)
  }
}
