import WireProtocol

/// How an instrument sounds.
struct InstrumentPatch {
  enum Source {
    case oscillators(OscillatorSound.Patch)
    case modulated(ModulatedSound.Patch)
    case string
    case drums
  }

  /// A low-pass that follows the note.
  struct Filter {
    /// For the middle C at velocity 100, when the envelope is at its end.
    var hertz: Double
    /// What of the pitch's own rise the cut-off takes part in: 0 to 1.
    var tracking = 0.5
    /// How far the envelope opens it.
    var octaves = 0.0
    var shape = Envelope.Shape(0.005, 1, 0, 0.5)
    /// 0.7, none, to 4.
    var resonance = 0.75
  }

  var source: Source
  /// Makes instruments equally loud (`SynthesisLevelTests`).
  var level: Float
  var envelope: Envelope.Shape
  var filter: Filter?
  var isStereo = false
}

extension InstrumentPatch {
  static func of(_ instrument: Score.Instrument) -> InstrumentPatch {
    switch instrument {
    case .pluck: pluck
    case .bell: bell
    case .electricPiano: electricPiano
    case .marimba: marimba
    case .brass: brass
    case .saw: saw
    case .square: square
    case .triangle: triangle
    case .flute: flute
    case .bass: bass
    case .pad: pad
    case .strings: strings
    case .choir: choir
    case .drums: drums
    }
  }

  private typealias Pair = ModulatedSound.Patch.Pair

  private static let pluck = InstrumentPatch(
    source: .string, level: 0.115, envelope: .init(0.001, 1, 1, 0.5))

  private static let drums = InstrumentPatch(
    source: .drums, level: 0.244, envelope: .init(0.0003, 1, 1, 3))

  // MARK: - Modulated

  private static let bell = InstrumentPatch(
    source: .modulated(
      .init(pairs: [
        Pair(
          carrier: 1, modulator: 3.5, index: 1.6, indexShape: .init(0, 2.5, 0.1, 1), level: 1,
          levelShape: .init(0, 6, 0, 1), pan: -0.3),
        Pair(
          carrier: 2, modulator: 2.76, index: 0.9, indexShape: .init(0, 1.2, 0, 1), level: 0.35,
          levelShape: .init(0, 3, 0, 1), cents: 2, pan: 0.5),
        Pair(
          carrier: 5.4, modulator: 1, index: 0.4, indexShape: .init(0, 0.5, 0, 1), level: 0.1,
          levelShape: .init(0, 0.7, 0, 1), pan: 0),
      ])),
    level: 0.101, envelope: .init(0.001, 1, 1, 2.5), isStereo: true)

  private static let electricPiano = InstrumentPatch(
    source: .modulated(
      .init(pairs: [
        Pair(
          carrier: 1, modulator: 1, index: 1.1, indexShape: .init(0, 2.2, 0.25, 1), level: 0.6,
          levelShape: .init(0, 7, 0, 1), cents: -2, pan: -0.45),
        Pair(
          carrier: 1, modulator: 1, index: 0.8, indexShape: .init(0, 3, 0.2, 1), level: 0.6,
          levelShape: .init(0, 7, 0, 1), cents: 2, pan: 0.45),
        Pair(
          carrier: 1, modulator: 14, index: 0.45, indexShape: .init(0, 0.45, 0, 1), level: 0.3,
          levelShape: .init(0, 1.6, 0, 1), pan: 0),
      ])),
    level: 0.110, envelope: .init(0.002, 1, 1, 0.45), isStereo: true)

  private static let marimba = InstrumentPatch(
    source: .modulated(
      .init(pairs: [
        Pair(
          carrier: 1, modulator: 2.4, index: 0.7, indexShape: .init(0, 0.06, 0, 1), level: 1,
          levelShape: .init(0, 1.5, 0, 1)),
        Pair(
          carrier: 4, modulator: 1, index: 0.2, indexShape: .init(0, 0.2, 0, 1), level: 0.3,
          levelShape: .init(0, 0.35, 0, 1)),
        Pair(
          carrier: 9.9, modulator: 1, index: 0, indexShape: .init(0, 0.1, 0, 1), level: 0.08,
          levelShape: .init(0, 0.12, 0, 1)),
      ])),
    level: 0.196, envelope: .init(0.001, 1, 1, 0.9))

  private static let brass = InstrumentPatch(
    source: .modulated(
      .init(
        pairs: [
          Pair(
            carrier: 1, modulator: 1, index: 3.2, indexShape: .init(0.07, 0.9, 0.55, 1), level: 0.5,
            levelShape: .init(0.03, 1, 0.85, 1), cents: -3, pan: -0.5),
          Pair(
            carrier: 1, modulator: 1, index: 2.6, indexShape: .init(0.1, 1.2, 0.6, 1), level: 0.5,
            levelShape: .init(0.04, 1, 0.85, 1), cents: 3, pan: 0.5),
        ], vibrato: .init(cents: 9, hertz: 5.2, delaySeconds: 0.4))),
    level: 0.164, envelope: .init(0.02, 1, 1, 0.25), filter: Filter(hertz: 5_000, tracking: 0.3),
    isStereo: true
  )

  // MARK: - Oscillators

  private static let saw = InstrumentPatch(
    source: .oscillators(.init(waveform: .saw, spreadCents: 7, width: 0.6)),
    level: 0.069, envelope: .init(0.006, 1.5, 0.75, 0.25),
    filter: Filter(hertz: 1_800, octaves: 2, shape: .init(0.005, 1.2, 0.15, 0.4), resonance: 1),
    isStereo: true)

  private static let square = InstrumentPatch(
    source: .oscillators(.init(waveform: .square)),
    level: 0.076, envelope: .init(0.005, 1.5, 0.7, 0.2),
    filter: Filter(hertz: 1_600, octaves: 1.5, shape: .init(0.003, 0.9, 0.2, 0.4)))

  private static let triangle = InstrumentPatch(
    source: .oscillators(.init(waveform: .triangle, vibrato: .init(cents: 5))),
    level: 0.122, envelope: .init(0.008, 2, 0.8, 0.25), filter: Filter(hertz: 4_000))

  private static let flute = InstrumentPatch(
    source: .oscillators(
      .init(waveform: .flute, vibrato: .init(cents: 10, hertz: 4.8, delaySeconds: 0.3), noise: 0.05)),
    level: 0.093, envelope: .init(0.06, 1, 0.9, 0.2),
    filter: Filter(hertz: 2_600, tracking: 0.7, octaves: 0.8, shape: .init(0.05, 0.5, 0.3, 0.3)))

  private static let bass = InstrumentPatch(
    source: .oscillators(.init(waveform: .warmSaw)),
    level: 0.085, envelope: .init(0.004, 3, 0.65, 0.15),
    filter: Filter(
      hertz: 700, tracking: 0.3, octaves: 2.2, shape: .init(0.003, 0.7, 0.1, 0.3), resonance: 1.1))

  // MARK: - Slow and wide

  private static let pad = InstrumentPatch(
    source: .oscillators(
      .init(waveform: .warmSaw, spreadCents: 9, vibrato: .init(cents: 3, hertz: 0.7, delaySeconds: 0))),
    level: 0.042, envelope: .init(0.7, 3, 0.9, 1.5),
    filter: Filter(hertz: 1_000, tracking: 0.4, octaves: 0.8, shape: .init(1.2, 6, 0.4, 2)), isStereo: true)

  private static let strings = InstrumentPatch(
    source: .oscillators(
      .init(
        waveform: .saw, spreadCents: 7, vibrato: .init(cents: 7, hertz: 5.4, delaySeconds: 0.3), noise: 0.03)),
    level: 0.067, envelope: .init(0.22, 2, 0.9, 0.8),
    filter: Filter(hertz: 2_400, tracking: 0.4, octaves: 0.5, shape: .init(0.3, 3, 0.5, 1)), isStereo: true)

  private static let choir = InstrumentPatch(
    source: .oscillators(
      .init(
        waveform: .vowel, spreadCents: 8, vibrato: .init(cents: 13, hertz: 5.1, delaySeconds: 0.35),
        noise: 0.03)),
    level: 0.054, envelope: .init(0.3, 2, 0.92, 0.9), filter: Filter(hertz: 4_500, tracking: 0.2),
    isStereo: true)
}
