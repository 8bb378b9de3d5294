import RouterCore
import Testing
import WireProtocol

private typealias Kind = RepositoryEvent.Kind
private typealias Outcome = RepositoryEvent.Outcome
private typealias Figure = MusicalParameters.Figure
private typealias Cadence = MusicalParameters.Cadence

@Suite struct `The mapper` {
  private func parameters(
    _ event: RepositoryEvent, _ history: MusicHistory = MusicHistory(), _ mapping: MusicMapping = .standard
  ) -> MusicalParameters {
    MusicMapper.parameters(for: event, history: history, mapping: mapping)
  }

  // MARK: The table

  /// What a listener should hear in each thing that happens.
  private static let table: [(Kind, String?, Outcome?, MusicalParameters.Mood, Scale, Figure, Cadence)] = [
    (.push, nil, nil, .ordinary, .dorian, .song, .plagal),
    (.pullRequest, "opened", nil, .ordinary, .aeolian, .song, .half),
    (.pullRequest, "reopened", nil, .ordinary, .aeolian, .song, .half),
    (.pullRequest, "ready_for_review", nil, .ordinary, .aeolian, .song, .half),
    (.pullRequest, "closed", .success, .bright, .lydian, .song, .authentic),
    (.pullRequest, "closed", .neutral, .ordinary, .dorian, .song, .plagal),
    (.pullRequest, "synchronize", nil, .ordinary, .dorian, .song, .half),
    (.pullRequest, "labeled", nil, .ordinary, .dorian, .remark, .half),
    (.pullRequestReview, "submitted", .success, .bright, .ionian, .song, .authentic),
    (.pullRequestReview, "submitted", .failure, .dark, .aeolian, .song, .half),
    (.pullRequestReview, "submitted", .neutral, .ordinary, .dorian, .remark, .half),
    (.checkRun, "completed", .success, .bright, .ionian, .song, .authentic),
    (.checkRun, "completed", .failure, .dark, .phrygian, .song, .deceptive),
    (.checkRun, "created", .pending, .ordinary, .aeolian, .remark, .half),
    (.checkRun, "completed", .neutral, .ordinary, .mixolydian, .remark, .plagal),
    (.workflowRun, "completed", .success, .bright, .ionian, .song, .authentic),
    (.workflowRun, "completed", .failure, .dark, .phrygian, .song, .deceptive),
    (.workflowRun, "requested", .pending, .ordinary, .aeolian, .remark, .half),
    (.workflowRun, "completed", .neutral, .ordinary, .mixolydian, .remark, .plagal),
    (.deploymentStatus, "created", .success, .bright, .lydian, .song, .authentic),
    (.deploymentStatus, "created", .failure, .dark, .phrygian, .song, .deceptive),
    (.deploymentStatus, "created", .pending, .ordinary, .aeolian, .song, .half),
    (.deploymentStatus, "created", .neutral, .ordinary, .mixolydian, .remark, .plagal),
    (.issues, "opened", nil, .ordinary, .aeolian, .song, .half),
    (.issues, "closed", nil, .bright, .ionian, .song, .authentic),
    (.issues, "closed", .neutral, .ordinary, .mixolydian, .song, .plagal),
    (.issues, "labeled", nil, .ordinary, .mixolydian, .remark, .plagal),
    (.issueComment, "created", nil, .ordinary, .mixolydian, .remark, .plagal),
    (.issueComment, "deleted", nil, .ordinary, .aeolian, .remark, .plagal),
    (.release, "published", nil, .bright, .ionian, .fanfare, .authentic),
    (.release, "deleted", nil, .dark, .aeolian, .song, .deceptive),
    (.release, "edited", nil, .bright, .mixolydian, .remark, .plagal),
    (.star, "created", nil, .bright, .ionian, .glitter, .plagal),
    (.star, "deleted", nil, .ordinary, .dorian, .remark, .plagal),
    (.fork, nil, nil, .bright, .mixolydian, .branch, .plagal),
  ]

  @Test(arguments: table.indices)
  func `knows what each event is like`(_ index: Int) throws {
    let (kind, action, outcome, mood, scale, figure, cadence) = Self.table[index]
    let parameters = parameters(try MusicEvents.event(kind, action, outcome))
    #expect(parameters.mood == mood)
    #expect(parameters.scale == scale)
    #expect(parameters.figure == figure)
    #expect(parameters.cadence == cadence)
  }

  @Test func `has an answer for every kind, action and outcome`() throws {
    let actions = Set(Self.table.compactMap(\.1)).sorted()
    for kind in Kind.allCases {
      for action in [nil, "", "never heard of"] + actions.map(Optional.some) {
        for outcome in [nil] + Outcome.allCases.map(Optional.some) {
          let parameters = parameters(try MusicEvents.event(kind, action, outcome))
          #expect(!parameters.isSilent)
          #expect(PieceBounds.hold(parameters))
        }
      }
    }
  }

  @Test func `makes more of what is bigger`() throws {
    let sizes = [1, 2, 5, 20, 100, 10_000]
    let pieces = try sizes.map { parameters(try MusicEvents.event(.push, commits: $0)) }
    for (smaller, bigger) in zip(pieces, pieces.dropFirst()) {
      #expect(smaller.intensity < bigger.intensity)
      #expect(smaller.emotion.activity < bigger.emotion.activity)
      #expect(smaller.durationMs < bigger.durationMs + 2_000)
    }
    #expect(pieces[0].durationMs + 4_000 < pieces[5].durationMs)
  }

  @Test func `hears growth in lines that were added, and is darker where they went`() throws {
    let grown = parameters(try MusicEvents.event(.push, additions: 900, deletions: 10))
    let shrunk = parameters(try MusicEvents.event(.push, additions: 10, deletions: 900))
    #expect(grown.emotion.growth > shrunk.emotion.growth)
    #expect(grown.emotion.tension < shrunk.emotion.tension)
    #expect(grown.emotion.resolution > shrunk.emotion.resolution)
  }

  @Test func `breaks what was forced`() throws {
    let forced = parameters(try MusicEvents.event(.push, commits: 1, isForced: true))
    #expect(forced.figure == .stutter)
    #expect(forced.cadence == .deceptive)
    #expect(forced.mood == .dark)
  }

  @Test func `leaves the drums out of what is quiet`() throws {
    for (kind, action) in [(Kind.star, "created"), (.fork, nil), (.issueComment, "created")] {
      #expect(!parameters(try MusicEvents.event(kind, action)).voices.contains(.percussion))
    }
    #expect(
      parameters(try MusicEvents.event(.release, "published")).voices == [
        .melody, .harmony, .bass, .percussion,
      ])
    #expect(parameters(try MusicEvents.event(.issueComment, "created")).voices == [.melody])
  }

  // MARK: Key and instruments

  @Test func `keeps a repository's key, whatever happens`() throws {
    var history = MusicHistory()
    for event in try MusicEvents.day() {
      let parameters = parameters(event, history)
      #expect(parameters.key == Key(of: event.repositoryID).name)
      _ = Composer.piece(for: event, parameters: parameters, history: &history)
    }
    let keys = try (0..<200).map { Key(of: try SessionID("\($0)")).name }
    #expect(Set(keys).count == 12)
  }

  @Test func `gives languages their instruments`() throws {
    func melody(_ language: String?) throws -> Score.Instrument {
      parameters(try MusicEvents.event(.push, commits: 1, language: language)).instrument
    }
    #expect(try melody("C++") == .pluck)
    #expect(try melody("Swift") == .electricPiano)
    #expect(try melody("swift") == .electricPiano)
    #expect(try melody("TypeScript") == .marimba)
    #expect(try melody("Haskell") == .bell)
    #expect(try melody("Go") == .flute)
    #expect(try melody("Java") == .brass)
    #expect(try melody("HTML") == .saw)
    #expect(try melody("Shell") == .square)
    #expect(try melody(nil) == .electricPiano)
    // By the name's hash, so the same forever.
    #expect(try melody("Brainfuck") == melody("BRAINFUCK"))
    let strangers = try (0..<100).map { try melody("Language \($0)") }
    #expect(Set(strangers).count == 8)
  }

  @Test func `gives the same parameters for the same event and past`() throws {
    for event in try MusicEvents.day() { #expect(parameters(event) == parameters(event)) }
  }
}

/// What parameters never leave.
enum PieceBounds {
  static func hold(_ parameters: MusicalParameters) -> Bool {
    let emotion = parameters.emotion
    let effects = parameters.effects
    return [
      emotion.tension, emotion.resolution, emotion.activity, emotion.growth, parameters.intensity,
      effects.reverb,
      effects.delay, effects.chorus,
    ].allSatisfy((0...1).contains)
      && (60...180).contains(parameters.tempo) && (4_000...20_000).contains(parameters.durationMs)
      && (0.2...10).contains(effects.reverbSeconds)
  }
}
