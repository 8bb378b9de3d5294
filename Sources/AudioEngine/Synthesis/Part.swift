import WireProtocol

/// One of a score's voices while the score is rendered.
final class Part {
  let voice: Score.Voice
  let isStereo: Bool
  /// Its loudness on either side.
  let gains: (left: Float, right: Float)
  /// Of its role among all.
  let roleIndex: Int
  private let seed: UInt64
  /// By start.
  private let notes: [Score.Note]
  /// Of the next note to begin.
  private var index = 0
  /// What its notes' starts are counted from, in the renderer's samples.
  private var origin: Int
  /// In the order of their beginning.
  private(set) var sounding: [SoundingNote] = []

  /// - Parameters:
  ///   - notes: of this voice only.
  ///   - origin: the renderer's position of the score's first sample.
  ///   - start: no note begins before it.
  init(_ voice: Score.Voice, notes: [Score.Note], seed: UInt64, origin: Int, start: Int) {
    self.voice = voice
    self.seed = seed
    self.origin = origin
    isStereo = InstrumentPatch.of(voice.instrument).isStereo
    let pan = PanGains(voice.pan)
    gains = (pan.left * Float(voice.gain), pan.right * Float(voice.gain))
    roleIndex = Score.Role.allCases.firstIndex(of: voice.role)!
    let order = notes.indices.sorted { (notes[$0].start, $0) < (notes[$1].start, $1) }
    self.notes = order.map { notes[$0] }
    skip(to: start)
  }

  private func skip(to start: Int) {
    if let loop = voice.loop, start > origin, !notes.isEmpty { origin += (start - origin) / loop * loop }
    while let next = nextStart, next < start { advance() }
  }

  /// Where its next note begins; nil after the last.
  var nextStart: Int? { index < notes.count ? origin + notes[index].start : nil }

  /// Whether nothing of it is or will be heard.
  var isOver: Bool { sounding.isEmpty && nextStart == nil }

  private func advance() {
    index += 1
    if index == notes.count, let loop = voice.loop {
      index = 0
      origin += loop
    }
  }

  /// How many of its notes begin at `position`.
  func startCount(at position: Int) -> Int {
    notes[index...].prefix { origin + $0.start == position }.count
  }

  /// Passes a note by that would not be heard.
  func skipNote() { advance() }

  func beginNote() {
    let note = notes[index]
    let sound = SoundingNote(
      note, start: origin + note.start, instrument: voice.instrument, cutoffHertz: voice.cutoffHertz,
      seed: seed)
    let samples = ControlBlock.sampleCount - sound.start % ControlBlock.sampleCount
    sound.setControls(at: sound.start, samples: samples)
    sounding.append(sound)
    advance()
  }

  /// Sets the control values of all its notes; those that are over are forgotten.
  func setControls(at position: Int) {
    sounding.removeAll { $0.isOver }
    for note in sounding { note.setControls(at: position, samples: ControlBlock.sampleCount) }
  }

  func add(to output: Channels, through scratch: Channels, at position: Int, _ span: Span) {
    for note in sounding {
      // A note that began within the control block has had its settings since then.
      let offset = min(span.offset, position - note.start)
      note.add(to: output, through: scratch, Span(offset: offset, count: span.count))
    }
  }
}
