import WireProtocol

/// Event to music, by tables: `EventCharacter`, `LanguageInstruments`, `Tempo` and those below.
package enum MusicMapper {
  /// - Parameter history: of what came before the event.
  package static func parameters(
    for event: RepositoryEvent, history: MusicHistory, mapping: MusicMapping
  ) -> MusicalParameters {
    let character = EventCharacter.of(event)
    let override = mapping.events[event.kind] ?? MusicMapping.Event()
    let rate = history.commitsPerHour(with: event)
    let size = EventSize(of: event)
    let figure = event.isForced ? .stutter : character.figure
    let emotion = emotion(character, size, rate: rate, isForced: event.isForced, override)
    let intensity = override.intensity ?? size.raising(character.intensity, by: 0.7).toThousandths
    let mood = mood(emotion)
    let tempo = Tempo.beatsPerMinute(
      commitsPerHour: rate, slowest: mapping.slowestTempo, fastest: mapping.fastestTempo
    ).toThousandths
    let instruments = instruments(language: event.language, figure: figure, mapping)
    return MusicalParameters(
      emotion: emotion, intensity: intensity, mood: mood, key: Key(of: event.repositoryID).name,
      scale: scale(emotion, mapping), tempo: tempo, commitsPerHour: rate.toThousandths,
      instrument: instruments.melody, harmonyInstrument: instruments.harmony,
      bassInstrument: instruments.bass,
      voices: override.isSilent ? [] : voices(emotion, figure), gains: mapping.gains, figure: figure,
      cadence: event.isForced ? .deceptive : character.cadence, effects: effects(emotion, mood),
      durationMs: PieceLength(intensity: intensity, tempo: tempo).milliseconds)
  }

  private static func emotion(
    _ character: EventCharacter, _ size: EventSize, rate: Double, isForced: Bool,
    _ override: MusicMapping.Event
  ) -> MusicalParameters.Emotion {
    let growth = size.growth.map { (character.growth + $0) / 2 } ?? character.growth
    // What grows is a little brighter, what shrinks a little darker.
    let lift = 0.2 * (growth - character.growth)
    let strain = isForced ? 0.4 : 0
    let busy = size.raising(character.activity, by: 0.5)
    let pace = Tempo.beatsPerMinute(commitsPerHour: rate, slowest: 0, fastest: 1)
    func value(_ own: Double?, _ value: Double) -> Double { own ?? value.clamped(to: 0...1).toThousandths }
    return MusicalParameters.Emotion(
      tension: value(override.tension, character.tension + strain - lift),
      resolution: value(override.resolution, character.resolution - strain / 2 + lift),
      activity: value(override.activity, busy + (1 - busy) * pace * 0.3),
      growth: value(override.growth, growth))
  }

  /// By how far resolution outweighs tension.
  private static func mood(_ emotion: MusicalParameters.Emotion) -> MusicalParameters.Mood {
    switch emotion.resolution - emotion.tension {
    case ..<(-moodBorder): .dark
    case moodBorder...: .bright
    default: .ordinary
    }
  }

  private static let moodBorder = 0.3

  static func scale(_ emotion: MusicalParameters.Emotion, _ mapping: MusicMapping) -> Scale {
    let balance = emotion.resolution - emotion.tension
    // Of the mood's scales, from dark to bright, the one as far in as the balance is in the mood's range.
    let (scales, place) =
      switch mood(emotion) {
      case .dark:
        (mapping.scales.dark ?? [.phrygian, .harmonicMinor, .aeolian], (balance + 1) / (1 - moodBorder))
      case .ordinary:
        (
          mapping.scales.ordinary ?? [.aeolian, .dorian, .mixolydian],
          (balance + moodBorder) / (2 * moodBorder)
        )
      case .bright:
        (mapping.scales.bright ?? [.mixolydian, .ionian, .lydian], (balance - moodBorder) / (1 - moodBorder))
      }
    return scales[Int(place * Double(scales.count)).clamped(to: 0...scales.count - 1)]
  }

  static func instruments(
    language: String?, figure: MusicalParameters.Figure, _ mapping: MusicMapping
  ) -> LanguageInstruments {
    let usual = LanguageInstruments.of(language)
    let own = language.flatMap { mapping.languages[$0.lowercased()] }
    let lead: Score.Instrument? =
      switch figure {
      case .glitter: .bell
      case .fanfare: .brass
      default: nil
      }
    return LanguageInstruments(
      melody: mapping.instruments.melody ?? own?.melody ?? lead ?? usual.melody,
      harmony: mapping.instruments.harmony ?? own?.harmony ?? usual.harmony,
      bass: mapping.instruments.bass ?? own?.bass ?? usual.bass)
  }

  private static func voices(
    _ emotion: MusicalParameters.Emotion, _ figure: MusicalParameters.Figure
  ) -> [Score.Role] {
    switch figure {
    case .remark: [.melody]
    case .glitter: [.melody, .harmony]
    case .branch: [.melody, .harmony, .bass]
    case .song, .fanfare, .stutter:
      // A heart beats where it is very tense, also when little goes on.
      emotion.activity < percussionBorder && emotion.tension < heartbeatBorder
        ? [.melody, .harmony, .bass] : [.melody, .harmony, .bass, .percussion]
    }
  }

  /// Activity below which nobody drums.
  private static let percussionBorder = 0.42
  private static let heartbeatBorder = 0.8

  private static func effects(
    _ emotion: MusicalParameters.Emotion, _ mood: MusicalParameters.Mood
  ) -> MusicalParameters.Effects {
    MusicalParameters.Effects(
      reverb: (0.18 + 0.2 * emotion.resolution + 0.2 * emotion.tension).toThousandths,
      delay: (0.08 + 0.25 * emotion.activity).toThousandths,
      chorus: (0.1 + 0.35 * emotion.tension).toThousandths,
      reverbSeconds: (mood == .dark ? 3.2 : 2 + emotion.resolution).toThousandths)
  }
}
