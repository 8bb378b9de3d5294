import RouterCore
import Testing

@Suite struct `A mapping file` {
  private func mapping(_ json: String) throws -> MusicMapping { try MusicMapping(json: Array(json.utf8)) }

  private func parameters(_ event: RepositoryEvent, _ json: String) throws -> MusicalParameters {
    MusicMapper.parameters(for: event, history: MusicHistory(), mapping: try mapping(json))
  }

  @Test func `may say nothing`() throws {
    #expect(try mapping("{}") == .standard)
  }

  @Test func `chooses scales by mood`() throws {
    let json = #"{"scales": {"dark": ["harmonicMinor"], "bright": ["ionian", "lydian"]}}"#
    #expect(try parameters(MusicEvents.event(.checkRun, nil, .failure), json).scale == .harmonicMinor)
    #expect(try parameters(MusicEvents.event(.pullRequest, "closed", .success), json).scale == .lydian)
    #expect(try parameters(MusicEvents.event(.push), json).scale == .dorian)
  }

  @Test func `keeps the tempo within its own range`() throws {
    let json = #"{"tempo": {"slowest": 80, "fastest": 100}}"#
    #expect(try parameters(MusicEvents.event(.star), json).tempo == 80)
    #expect(try parameters(MusicEvents.event(.push, commits: 1_000_000), json).tempo < 100)
    #expect(try parameters(MusicEvents.event(.push, commits: 1_000_000), json).tempo > 99)
  }

  @Test func `chooses instruments, for all or by language`() throws {
    let json =
      #"{"instruments": {"bass": "triangle"}, "languages": {"SWIFT": {"melody": "flute", "bass": "saw"}}}"#
    let swift = try parameters(MusicEvents.event(.push), json)
    #expect(swift.instrument == .flute)
    #expect(swift.bassInstrument == .triangle)
    #expect(swift.harmonyInstrument == .pad)
    #expect(try parameters(MusicEvents.event(.push, language: "C"), json).instrument == .pluck)
  }

  @Test func `silences a kind, or gives it other emotions`() throws {
    let json =
      #"{"events": {"star": {"silent": true}, "push": {"tension": 0.9, "resolution": 0, "intensity": 1}}}"#
    #expect(try parameters(MusicEvents.event(.star), json).isSilent)
    let push = try parameters(MusicEvents.event(.push), json)
    #expect(push.emotion.tension == 0.9)
    #expect(push.intensity == 1)
    #expect(push.mood == .dark)
    #expect(push.scale == .phrygian)
    #expect(try !parameters(MusicEvents.event(.fork), json).isSilent)
  }

  @Test func `makes voices louder, softer or silent`() throws {
    let json = #"{"gains": {"melody": 2, "percussion": 0, "bed": 0.5}}"#
    let event = try MusicEvents.event(.release, "published")
    let parameters = try parameters(event, json)
    var history = MusicHistory()
    let score = try Composer.piece(for: event, parameters: parameters, history: &history).checked()
    #expect(score.voices.first { $0.role == .percussion }?.gain == 0)
    let standard = Composer.bed(repositoryID: event.repositoryID, name: "bed", mapping: .standard)
    let quiet = Composer.bed(repositoryID: event.repositoryID, name: "bed", mapping: try mapping(json))
    #expect(zip(standard.voices, quiet.voices).allSatisfy { $0.gain == 2 * $1.gain })
    #expect(standard.notes == quiet.notes)
  }

  @Test func `may make everything as loud as it can be`() throws {
    let loud = try mapping(#"{"gains": {"melody": 2, "harmony": 2, "bass": 2, "percussion": 2, "bed": 2}}"#)
    let event = try MusicEvents.event(.release, "published")
    var history = MusicHistory()
    let parameters = MusicMapper.parameters(for: event, history: history, mapping: loud)
    _ = try Composer.piece(for: event, parameters: parameters, history: &history).checked()
    _ = try Composer.bed(repositoryID: event.repositoryID, name: "bed", mapping: loud).checked()
    let (replay, _) = Composer.replay(
      events: [(event, parameters)], from: 0, until: .max, name: "replay", mapping: loud)
    _ = try replay.checked()
  }

  /// Each with what its error must say: the field, and what is allowed.
  @Test(arguments: [
    ("", "not JSON"), ("[]", "not a JSON object"), ("{", "not JSON"), ("7", "not a JSON object"),
    (
      #"{"scale": {}}"#,
      "scale is not known; allowed are scales, tempo, instruments, languages, gains, events"
    ),
    (#"{"scales": {"sad": ["aeolian"]}}"#, "scales.sad is not known; allowed are dark, ordinary, bright"),
    (#"{"scales": {"dark": ["locrian"]}}"#, "scales.dark is not a list of 1 to 7 of phrygian, harmonicMinor"),
    (#"{"scales": {"dark": []}}"#, "scales.dark is not a list of 1 to 7"),
    (#"{"scales": {"dark": "aeolian"}}"#, "scales.dark is not a list"),
    (#"{"scales": []}"#, "scales is not an object"),
    (#"{"tempo": {"slowest": 59}}"#, "tempo.slowest is not a number from 60.0 to 180.0"),
    (#"{"tempo": {"fastest": "180"}}"#, "tempo.fastest is not a number from 60.0 to 180.0"),
    (#"{"tempo": {"slowest": 120, "fastest": 110}}"#, "tempo.slowest is not below tempo.fastest"),
    (#"{"instruments": {"melody": "kazoo"}}"#, "instruments.melody is none of pluck, bell"),
    (#"{"instruments": {"melody": "drums"}}"#, "instruments.melody is none of"),
    (#"{"instruments": {"percussion": "drums"}}"#, "instruments.percussion is not known"),
    (#"{"languages": {"C": {"melody": 1}}}"#, "languages.C.melody is none of"),
    (#"{"events": {"pushes": {}}}"#, "events.pushes is not known; allowed are push, pull_request"),
    (#"{"events": {"push": {"silent": 1}}}"#, "events.push.silent is not true or false"),
    (#"{"events": {"push": {"tension": 1.01}}}"#, "events.push.tension is not a number from 0.0 to 1.0"),
    (#"{"gains": {"bass": -1}}"#, "gains.bass is not a number from 0.0 to 2.0"),
    (
      #"{"gains": {"drums": 1}}"#,
      "gains.drums is not known; allowed are melody, harmony, bass, percussion, bed"
    ),
  ])
  func `names the field that is wrong, and what is allowed`(_ json: String, _ words: String) throws {
    let problem = try #require(throws: MusicMapping.Problem.self) { try mapping(json) }
    #expect(problem.description.contains(words))
  }

  @Test func `has limits`() throws {
    let long = #"{"languages": {"\#(String(repeating: "x", count: MusicMapping.maximumByteCount))": {}}}"#
    #expect(throws: MusicMapping.Problem.self) { try mapping(long) }
    let many = (0...MusicMapping.maximumLanguages).map { #""\#($0)": {}"# }.joined(separator: ",")
    let problem = try #require(throws: MusicMapping.Problem.self) {
      try mapping(#"{"languages": {\#(many)}}"#)
    }
    #expect(problem.description.contains("languages"))
  }
}
