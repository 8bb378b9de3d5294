import RouterCore
import Testing
import WireProtocol

@Suite struct `A command's fingerprint` {
  private func fingerprint(_ json: String, type: String? = nil, entryID: String? = nil) throws -> String {
    let command = try ClientCommand.decode(
      Array(json.utf8), type: type, sessionID: SessionID("7"), entryID: entryID)
    return Fingerprint.of(command.action)
  }

  /// What is kept on disks already: a change here turns repetitions after an upgrade into conflicts.
  @Test func `is what it has always been`() throws {
    #expect(try fingerprint(#"{"type":"skip"}"#) == "1:b76c129a835ee184")
    #expect(try fingerprint(#"{"type":"play","url":"media:a"}"#) == "1:337165a4be836a50")
  }

  @Test func `is the same however the command is said`() throws {
    let plain = try fingerprint(#"{"type":"queue_add","url":"media:a","title":"t"}"#)
    for json in [
      #"{"type":"queue_add","title":"t","url":"media:a","next":false,"colour":"blue"}"#,
      #"{"request_id":"r","idempotency_key":"k","type":"queue_add","tracks":[{"url":"media:a","title":"t"}]}"#,
    ] {
      #expect(try fingerprint(json) == plain)
    }
    #expect(
      try fingerprint(#"{"type":"queue_remove","id":"3"}"#)
        == fingerprint("{}", type: "queue_remove", entryID: "3"))
  }

  @Test func `is another for another command`() throws {
    let commands = [
      #"{"type":"queue_add","url":"media:a"}"#, #"{"type":"queue_add","url":"media:b"}"#,
      #"{"type":"queue_add","url":"media:a","next":true}"#,
      #"{"type":"queue_add","url":"media:a","position":1}"#,
      #"{"type":"queue_add","url":"media:a","title":"t"}"#, #"{"type":"queue_add","query":"media:a"}"#,
      #"{"type":"queue_remove","id":"1"}"#, #"{"type":"skip_to","id":"1"}"#, #"{"type":"skip"}"#,
      #"{"type":"queue_move","id":"1","position":0}"#, #"{"type":"queue_move","id":"1","position":1}"#,
      #"{"type":"queue_loop","mode":"off"}"#, #"{"type":"queue_loop","mode":"queue"}"#,
      #"{"type":"quality","bitrate_kbps":null}"#, #"{"type":"quality","bitrate_kbps":64}"#,
      #"{"type":"play","url":"media:a"}"#, #"{"type":"prepare","url":"media:a"}"#,
      #"{"type":"play","url":"media:a","paused":true}"#, #"{"type":"volume","level":1}"#,
      #"{"type":"pause"}"#,
    ]
    let fingerprints = try commands.map { try fingerprint($0) }
    #expect(Set(fingerprints).count == commands.count)
  }
}
