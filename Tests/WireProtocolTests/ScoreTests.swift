import Testing
import WireProtocol

@Suite struct ScoreTests {
  private static let score = Score(
    title: "Söng", seed: 9_007_199_254_740_991, beat: 24_000, length: 96_000,
    voices: [
      Score.Voice(role: .melody, instrument: .electricPiano, pan: -0.25, cutoffHertz: 900),
      Score.Voice(role: .percussion, instrument: .drums),
    ],
    notes: [
      Score.Note(voice: 0, start: 0, length: 24_000, pitch: 69, velocity: 100),
      Score.Note(voice: 1, start: 95_999, length: 1, pitch: 36, velocity: 1),
    ])

  /// A field, and how it goes wrong.
  private static let wrong: [(String, @Sendable (inout Score) -> Void)] = [
    ("score.seed", { $0.seed = -1 }), ("score.beat", { $0.beat = 0 }),
    ("score.length", { $0.length = 5_760_001 }),
    ("score.title", { $0.title = String(repeating: "x", count: 201) }),
    ("score.effects.reverb_s", { $0.effects.reverbSeconds = .nan }),
    ("score.effects.delay", { $0.effects.delaySamples = 0 }),
    ("score.effects.delay_feedback", { $0.effects.delayFeedback = 1 }),
    ("score.effects.chorus_hz", { $0.effects.chorusHertz = 6 }),
    ("score.voices", { $0.voices = [] }), ("score.voices[0].gain", { $0.voices[0].gain = 2.1 }),
    ("score.voices[1].pan", { $0.voices[1].pan = -2 }),
    ("score.voices[0].reverb", { $0.voices[0].reverb = 1.5 }),
    ("score.voices[0].cutoff_hz", { $0.voices[0].cutoffHertz = 10 }),
    ("score.voices[0].loop", { $0.voices[0].loop = 96_000 }),
    ("score.notes[0]'s voice", { $0.notes[0].voice = 2 }),
    ("score.notes[1]'s start", { $0.notes[1].start = 96_000 }),
    ("score.notes[0]'s length", { $0.notes[0].length = 0 }),
    ("score.notes[0]'s pitch", { $0.notes[0].pitch = 128 }),
    ("score.notes[0]'s velocity", { $0.notes[0].velocity = 0 }),
    (
      "score.notes' number",
      { score in score.notes = Array(repeating: score.notes[0], count: ScoreLimits.maximumNotes + 1) }
    ),
  ]

  @Test func `commands with scores survive being written and read`() throws {
    var endless = Self.score
    endless.length = nil
    endless.voices[0].loop = 96_000
    let id = try SessionID("1296269")
    let actions: [EngineCommand.Action] = [
      .session(id, .play(PlayRequest(url: PlayRequest.scoreURL, score: endless, volume: 0.5))),
      .session(id, .perform(Self.score)), .session(id, .mute([.percussion, .bed])),
      .session(id, .mute([])), .render(.score(Self.score, .jsonDeflate)),
      .render(.piece(rendering: "ab12", offset: 49_152)),
    ]
    for action in actions {
      let command = EngineCommand(requestID: "r", action: action)
      #expect(try EngineCommand.decode(command.encodedLine().dropLast()) == command)
    }
  }

  @Test func `a note is five numbers`() throws {
    let line = EngineCommand(try SessionID("1"), .perform(Self.score)).encodedLine()
    #expect(String(decoding: line, as: UTF8.self).contains("[0,0,24000,69,100]"))
  }

  @Test func `events about scores survive being written and read`() throws {
    let id = try SessionID("1296269")
    let piece = RenderedPiece(
      rendering: "ab12", encoding: .pcm16, byteCount: 70_000, sampleCount: 17_500, offset: 0,
      data: .init([0, 255, 1]))
    for body: EngineEvent.Body in [
      .performing(ScorePlacement(sample: 96_001, length: 480, title: "Söng")), .muted([.bass]),
      .rendered(piece),
    ] {
      let event = EngineEvent(body, sessionID: id, requestID: "r")
      #expect(try EngineEvent.decode(event.encoded()) == event)
    }
    #expect(ScorePlacement(sample: 96_047, length: 1, title: nil).positionMilliseconds == 2_000)
  }

  @Test(arguments: wrong)
  func `what is out of range is named`(field: String, spoil: @Sendable (inout Score) -> Void) throws {
    var score = Self.score
    spoil(&score)
    let error = try #require(throws: ErrorReport.self) { _ = try score.checked() }
    #expect(error.code == .invalidCommand && error.message.contains("the field \(field)"), "\(error)")
  }

  @Test(arguments: [
    (#"{"type":"play","session_id":"1","url":"media:a","score":SCORE}"#, "url"),
    (#"{"type":"play","session_id":"1","score":[]}"#, "score"),
    (#"{"type":"perform","session_id":"1"}"#, "score"),
    (#"{"type":"perform","session_id":"1","score":ENDLESS}"#, "score.length"),
    (#"{"type":"render","score":ENDLESS}"#, "score.length"),
    (#"{"type":"render","score":SCORE,"encoding":"mp3"}"#, "encoding"),
    (#"{"type":"render","rendering":"a","offset":-1}"#, "offset"),
    (#"{"type":"mute","session_id":"1","voices":["tuba"]}"#, "voices"),
    (#"{"type":"mute","session_id":"1"}"#, "voices"),
  ])
  func `a wrong command is refused by the name of its field`(json: String, field: String) throws {
    var endless = Self.score
    endless.length = nil
    let text = json.replacing("SCORE", with: try Self.json(Self.score))
      .replacing("ENDLESS", with: try Self.json(endless))
    let error = try #require(throws: CommandError.self) { _ = try EngineCommand.decode(text.utf8) }
    #expect(error.report.message.contains("the field \(field) "), "\(error.report)")
  }

  private static func json(_ score: Score) throws -> String {
    let line = EngineCommand(try SessionID("1"), .play(PlayRequest(url: PlayRequest.scoreURL, score: score)))
      .encodedLine()
    let text = String(decoding: line, as: UTF8.self)
    // The score is an object of its own within the command.
    let start = try #require(text.range(of: #""score":"#)).upperBound
    var depth = 0
    for index in text.indices[start...] {
      if text[index] == "{" { depth += 1 }
      if text[index] == "}" { depth -= 1 }
      if depth == 0 { return String(text[start...index]) }
    }
    return ""
  }
}
