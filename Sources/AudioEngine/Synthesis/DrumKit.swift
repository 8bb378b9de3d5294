/// General MIDI's percussion keys, as far as they are here.
enum DrumKit {
  /// The nearest key's; the lower one's where two are as near.
  static func recipe(pitch: Int) -> DrumSound.Recipe {
    recipes.min { abs($0.key - pitch) < abs($1.key - pitch) }!.recipe
  }

  private typealias Tone = DrumSound.Recipe.Tone
  private typealias Noise = DrumSound.Recipe.Noise

  /// By key, from the lowest.
  private static let recipes: [(key: Int, recipe: DrumSound.Recipe)] = [
    (36, kick), (38, snare), (39, clap), (42, closedHat), (46, openHat), (49, crash), (56, cowbell),
    (70, shaker), (75, claves),
  ]

  private static let kick = DrumSound.Recipe(
    tones: [
      Tone(hertz: 49, sweepHertz: 120, sweepSeconds: 0.16, level: 1.5, decaySeconds: 0.55),
      Tone(hertz: 160, sweepHertz: 900, sweepSeconds: 0.02, level: 0.35, decaySeconds: 0.05),
    ],
    noise: Noise(lowHertz: 1_500, highHertz: 5_000, level: 0.15, decaySeconds: 0.025))

  private static let snare = DrumSound.Recipe(
    tones: [
      Tone(hertz: 186, sweepHertz: 60, sweepSeconds: 0.05, level: 0.6, decaySeconds: 0.22),
      Tone(hertz: 331, sweepHertz: 60, sweepSeconds: 0.05, level: 0.3, decaySeconds: 0.13),
    ],
    noise: Noise(lowHertz: 900, highHertz: 8_500, level: 0.75, decaySeconds: 0.28))

  private static let clap = DrumSound.Recipe(
    noise: Noise(
      lowHertz: 850, highHertz: 2_600, level: 1.3, decaySeconds: 0.3, repeats: [0.011, 0.022, 0.033]))

  private static let closedHat = hat(level: 0.5, decaySeconds: 0.1)
  private static let openHat = hat(level: 0.5, decaySeconds: 0.7)

  private static func hat(level: Float, decaySeconds: Double) -> DrumSound.Recipe {
    DrumSound.Recipe(
      tones: [
        Tone(hertz: 5_870, modulator: 0.683, index: 1.9, level: level * 0.3, decaySeconds: decaySeconds),
        Tone(
          hertz: 8_410, modulator: 0.417, index: 1.6, level: level * 0.25, decaySeconds: decaySeconds * 0.8),
      ],
      noise: Noise(lowHertz: 6_500, highHertz: 14_000, level: level, decaySeconds: decaySeconds))
  }

  private static let crash = DrumSound.Recipe(
    tones: [
      Tone(hertz: 3_170, modulator: 1.347, index: 2, level: 0.12, decaySeconds: 1.6),
      Tone(hertz: 5_230, modulator: 0.731, index: 2, level: 0.12, decaySeconds: 2),
    ],
    noise: Noise(lowHertz: 2_600, highHertz: 12_000, level: 0.6, attackSeconds: 0.003, decaySeconds: 2.4))

  private static let cowbell = DrumSound.Recipe(
    tones: [
      Tone(hertz: 562, modulator: 2, index: 1, level: 0.5, decaySeconds: 0.35),
      Tone(hertz: 845, modulator: 2, index: 1, level: 0.5, decaySeconds: 0.3),
    ])

  private static let shaker = DrumSound.Recipe(
    noise: Noise(lowHertz: 4_500, highHertz: 11_000, level: 0.6, attackSeconds: 0.02, decaySeconds: 0.12))

  private static let claves = DrumSound.Recipe(
    tones: [
      Tone(hertz: 2_480, level: 0.8, decaySeconds: 0.11),
      Tone(hertz: 4_310, level: 0.2, decaySeconds: 0.05),
    ])
}
