import WireProtocol

/// What an event is to sound like: all that a composer is told, and what listeners are shown. In JSON as it stands
/// here.
package struct MusicalParameters: Codable, Sendable, Equatable {
  package var emotion: Emotion
  /// How much is made of it: 0, an aside, to 1, the event of the week.
  package var intensity: Double
  package var mood: Mood
  /// The tonic: `D`.
  package var key: String
  package var scale: Scale
  /// Beats a minute, 60 to 180.
  package var tempo: Double
  /// What the tempo comes from.
  package var commitsPerHour: Double
  /// The melody's.
  package var instrument: Score.Instrument
  package var harmonyInstrument: Score.Instrument
  package var bassInstrument: Score.Instrument
  /// Which voices take part; none where the repository's mapping file silences the event.
  package var voices: [Score.Role]
  /// Linear, by which the voices are made louder or softer; those that are not named are at 1.
  package var gains: Gains
  package var figure: Figure
  package var cadence: Cadence
  package var effects: Effects
  /// From the first note to the end of the reverberation.
  package var durationMs: Int

  /// Whether the event is to make no music at all.
  package var isSilent: Bool { voices.isEmpty }

  /// What an event feels like; each 0 to 1.
  package struct Emotion: Codable, Sendable, Equatable {
    package var tension: Double
    package var resolution: Double
    package var activity: Double
    package var growth: Double

    package init(tension: Double, resolution: Double, activity: Double, growth: Double) {
      self.tension = tension
      self.resolution = resolution
      self.activity = activity
      self.growth = growth
    }
  }

  /// Which scales are chosen from.
  package enum Mood: String, Codable, Sendable, CaseIterable {
    case dark, ordinary, bright
  }

  /// What kind of piece is made.
  package enum Figure: String, Codable, Sendable, CaseIterable {
    /// Phrases over a progression of chords: most events.
    case song
    /// Two or three notes.
    case remark
    /// Quick high bells.
    case glitter
    /// One melody that becomes two.
    case branch
    /// The whole band.
    case fanfare
    /// A melody that is caught and breaks off.
    case stutter
  }

  /// How a piece ends.
  package enum Cadence: String, Codable, Sendable, CaseIterable {
    /// Dominant to tonic: an answer.
    case authentic
    /// Subdominant to tonic: it comes to rest.
    case plagal
    /// On the dominant: a question.
    case half
    /// On another chord than the one that was expected.
    case deceptive

    package var isResolved: Bool { self == .authentic || self == .plagal }
  }

  /// What is sent to the room, each 0 to 1, and what the room is like.
  package struct Effects: Codable, Sendable, Equatable {
    package var reverb: Double
    package var delay: Double
    package var chorus: Double
    /// 0.2 to 10.
    package var reverbSeconds: Double
  }

  package struct Gains: Codable, Sendable, Equatable {
    package var melody = 1.0
    package var harmony = 1.0
    package var bass = 1.0
    package var percussion = 1.0
    package var bed = 1.0

    static let range = 0.0...2.0

    package init() {}

    /// A voice's gain with a repository's own, within what scores allow.
    func applied(to gain: Double, of role: Score.Role) -> Double {
      (gain * self[role]).clamped(to: Self.range)
    }

    private subscript(role: Score.Role) -> Double {
      switch role {
      case .melody: melody
      case .harmony: harmony
      case .bass: bass
      case .percussion: percussion
      case .bed: bed
      }
    }
  }
}
