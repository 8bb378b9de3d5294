/// Music as notes: what the engine renders (`docs/wire-protocol.md`, "Scores").
///
/// Times and lengths are in samples at 48 kHz, so that a score has one reading only.
public struct Score: Codable, Hashable, Sendable {
  /// At most `WireLimits.maximumTagScalarCount` scalars.
  public var title: String?
  /// The seed of the generator behind everything random in the sound, `ScoreLimits.seedRange`.
  public var seed: Int
  /// Samples of a beat: the grid on which other scores join an endless one.
  public var beat: Int
  /// Samples from the first to the last, the sound's dying away included; nil for a score without an end, which
  /// plays until it is stopped.
  public var length: Int?
  public var effects: Effects
  public var voices: [Voice]
  public var notes: [Note]

  public init(
    title: String? = nil, seed: Int, beat: Int, length: Int?, effects: Effects = Effects(),
    voices: [Voice], notes: [Note]
  ) {
    self.title = title
    self.seed = seed
    self.beat = beat
    self.length = length
    self.effects = effects
    self.voices = voices
    self.notes = notes
  }

  /// The room around all voices. A score that joins another sounds in that one's room.
  public struct Effects: Codable, Hashable, Sendable {
    /// Until the reverberation is 60 dB down, in seconds: 0.2 to 10.
    public var reverbSeconds = 2.5
    /// Between the repeats of the delay, in samples: 480 to 96,000.
    public var delaySamples = 18_000
    /// What of a repeat is left in the next: 0 to 0.9.
    public var delayFeedback = 0.35
    /// Turns of the chorus in a second: 0.05 to 5.
    public var chorusHertz = 0.6

    public init() {}

    enum CodingKeys: String, CodingKey {
      case reverbSeconds = "reverb_s"
      case delaySamples = "delay"
      case delayFeedback = "delay_feedback"
      case chorusHertz = "chorus_hz"
    }
  }

  /// A part: who plays it, and where in the room.
  public struct Voice: Codable, Hashable, Sendable {
    public var role: Role
    public var instrument: Instrument
    /// Linear, 0 to 2.
    public var gain: Double
    /// −1, left, to 1, right.
    public var pan: Double
    /// What of it is sent to the effects: 0 to 1 each.
    public var reverb: Double
    public var delay: Double
    public var chorus: Double
    /// Where its low-pass begins, in hertz: 40 to 20,000; nil for the instrument's own.
    public var cutoffHertz: Double?
    /// Its notes repeat after this many samples, without end; nil for once. In endless scores only.
    public var loop: Int?

    public init(
      role: Role, instrument: Instrument, gain: Double = 1, pan: Double = 0, reverb: Double = 0.2,
      delay: Double = 0, chorus: Double = 0, cutoffHertz: Double? = nil, loop: Int? = nil
    ) {
      self.role = role
      self.instrument = instrument
      self.gain = gain
      self.pan = pan
      self.reverb = reverb
      self.delay = delay
      self.chorus = chorus
      self.cutoffHertz = cutoffHertz
      self.loop = loop
    }

    enum CodingKeys: String, CodingKey {
      case role, instrument, gain, pan, reverb, delay, chorus, loop
      case cutoffHertz = "cutoff_hz"
    }
  }

  /// What a voice is in the music; what a listener mutes.
  public enum Role: String, Codable, Hashable, Sendable, CaseIterable {
    case melody, harmony, bass, percussion, bed
  }

  public enum Instrument: String, Codable, Hashable, Sendable, CaseIterable {
    /// A plucked string.
    case pluck
    /// Frequency modulation.
    case bell
    case electricPiano = "electric_piano"
    case marimba
    case brass
    /// Band-limited oscillators with an envelope and a filter.
    case saw, square, triangle, flute, bass
    /// Slow and wide, of several oscillators.
    case pad, strings, choir
    /// Pitches are General MIDI's percussion keys: 36 bass drum, 38 snare, 39 clap, 42 closed and 46 open hat, 49
    /// crash, 56 cowbell, 70 shaker, 75 claves; others sound as the nearest of these.
    case drums
  }

  /// One note; in JSON `[voice, start, length, pitch, velocity]`.
  public struct Note: Hashable, Sendable {
    /// Which of the score's voices.
    public var voice: Int
    /// Samples from the score's start.
    public var start: Int
    /// Samples until it is let go.
    public var length: Int
    /// MIDI: 69 is the A of 440 Hz.
    public var pitch: Int
    /// 1 to 127.
    public var velocity: Int

    public init(voice: Int, start: Int, length: Int, pitch: Int, velocity: Int) {
      self.voice = voice
      self.start = start
      self.length = length
      self.pitch = pitch
      self.velocity = velocity
    }
  }
}

extension Score.Note: Codable {
  public init(from decoder: any Decoder) throws {
    var values = try decoder.unkeyedContainer()
    voice = try values.decode(Int.self)
    start = try values.decode(Int.self)
    length = try values.decode(Int.self)
    pitch = try values.decode(Int.self)
    velocity = try values.decode(Int.self)
  }

  public func encode(to encoder: any Encoder) throws {
    var values = encoder.unkeyedContainer()
    for value in [voice, start, length, pitch, velocity] { try values.encode(value) }
  }
}
