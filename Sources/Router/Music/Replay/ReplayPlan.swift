import WireProtocol

/// Where a replay's events fall, and over which chords. Places are in ticks, sixteenths (semiquavers).
struct ReplayPlan {
  /// 112 beats in a minute, so that each day of a week has four bars of four.
  static let beat = 60 * ScoreLimits.sampleRate / 112
  static let bars = 28
  static let barTicks = 16
  /// A minute, and two seconds to die away.
  static let length = 62 * ScoreLimits.sampleRate
  /// Events fall on eighths.
  private static let slotTicks = 2
  /// Events in a bar of eight positions: the others are rests.
  static let maximumEventsPerBar = 6

  let key: Key
  let scale: Scale
  let motif: Motif
  /// One for each bar; the last is the tonic.
  let chords: [Chord]
  /// One for each event, whether it sounds or not.
  let ticks: [Int]
  /// Indices of those that sound.
  let chosen: [Int]
  /// The number of events in each bar.
  let density: [Int]
  /// The melody's, which most of the events play.
  let instrument: Score.Instrument
  let harmonyInstrument: Score.Instrument
  let bassInstrument: Score.Instrument
  /// For the generators: the same time of the same repository sounds the same.
  let name: String

  init(_ events: [(RepositoryEvent, MusicalParameters)], from: Int, until: Int, _ mapping: MusicMapping) {
    let repository = events.first?.0.repositoryID
    name = "\(repository?.description ?? ""):\(from):\(until)"
    key = repository.map(Key.init(of:)) ?? Key(pitchClass: 0)
    motif = repository.map(Motif.init(of:)) ?? Motif(notes: [.init(step: 0, eighths: 2)])
    let last = events.last?.0
    let instruments = MusicMapper.instruments(language: last?.language, figure: .song, mapping)
    (instrument, harmonyInstrument, bassInstrument) = (
      instruments.melody, instruments.harmony, instruments.bass
    )
    scale = Self.scale(events.map(\.1), mapping)
    ticks = events.map { Self.tick($0.0.receivedMilliseconds, from, until) }
    chosen = Self.chosen(events.map(\.1), ticks)
    var density = [Int](repeating: 0, count: Self.bars)
    for tick in ticks { density[tick / Self.barTicks] += 1 }
    self.density = density
    var generator = SeededGenerator("replay chords:\(name)")
    chords = Self.chords(scale, &generator)
  }

  func chord(at tick: Int) -> Chord { chords[tick / Self.barTicks] }

  private static func tick(_ milliseconds: Int, _ from: Int, _ until: Int) -> Int {
    let span = Double(until) - Double(from)
    let slots = bars * barTicks / slotTicks
    guard span > 0 else { return 0 }
    let place = ((Double(milliseconds) - Double(from)) / span).clamped(to: 0...1)
    return Int(place * Double(slots)).clamped(to: 0...slots - 1) * slotTicks
  }

  /// One for each eighth, and of a bar's the most notable ones.
  private static func chosen(_ parameters: [MusicalParameters], _ ticks: [Int]) -> [Int] {
    let notableFirst = parameters.indices.filter { !parameters[$0].isSilent }.sorted { left, right in
      (-parameters[left].intensity, left) < (-parameters[right].intensity, right)
    }
    var taken = Set<Int>()
    var inBar = [Int](repeating: 0, count: bars)
    return notableFirst.filter { index in
      let bar = ticks[index] / barTicks
      guard inBar[bar] < maximumEventsPerBar, taken.insert(ticks[index]).inserted else { return false }
      inBar[bar] += 1
      return true
    }.sorted()
  }

  /// The one that goes with how things were on the whole.
  private static func scale(_ parameters: [MusicalParameters], _ mapping: MusicMapping) -> Scale {
    let count = Double(max(parameters.count, 1))
    func mean(_ value: (MusicalParameters.Emotion) -> Double) -> Double {
      parameters.reduce(0) { $0 + value($1.emotion) } / count
    }
    return MusicMapper.scale(
      .init(tension: mean(\.tension), resolution: mean(\.resolution), activity: 0, growth: 0), mapping)
  }

  /// Four chords for each of seven days.
  private static func chords(_ scale: Scale, _ generator: inout SeededGenerator) -> [Chord] {
    let table = Progressions.of(scale)
    var roots: [Int] = []
    while roots.count < bars { roots += generator.pick(table.openings) }
    roots = roots.prefix(bars - 3) + generator.pick(table.authentic)
    return roots.enumerated().map { index, root in
      Chord(root, index < bars - 1 && generator.chance(25) ? .seventh : .triad)
    }
  }
}
