import WireProtocol

/// One of a score's voices while the score is rendered.
struct Part {
  let settings: PartSettings
  var schedule: PartSchedule
  private let patch: InstrumentPatch
  private let seed: UInt64
  // Of these, the instrument's kind only has notes.
  private var oscillators = NoteGroup<OscillatorSound>()
  private var modulated = NoteGroup<ModulatedSound>()
  private var strings = NoteGroup<StringSound>()
  private var drums = NoteGroup<DrumSound>()

  /// - Parameter seed: of the randomness in its sound.
  init(_ voice: Score.Voice, _ schedule: PartSchedule, seed: UInt64) {
    var patch = InstrumentPatch.of(voice.instrument)
    if let hertz = voice.cutoffHertz {
      patch.filter = patch.filter ?? InstrumentPatch.Filter(hertz: hertz)
      patch.filter?.hertz = hertz
      patch.filter?.tracking = 0
    }
    self.patch = patch
    settings = PartSettings(voice, isStereo: patch.isStereo)
    self.schedule = schedule
    self.seed = seed
  }

  /// Whether no note sounds.
  var isSilent: Bool { oscillators.isEmpty && modulated.isEmpty && strings.isEmpty && drums.isEmpty }

  /// Whether nothing of it is or will be heard.
  var isOver: Bool { isSilent && schedule.nextStart == nil }

  /// Where the notes that sound began, in their order; nil for one that gives its place to another.
  var soundingStarts: [Int?] { oscillators.starts + modulated.starts + strings.starts + drums.starts }

  /// Begins the schedule's next note.
  mutating func beginNote() {
    let note = schedule.takeNote()
    // Of its place in the music: the same note sounds the same in a score that another has joined.
    let place = UInt64(note.start) &* 0xD605_1A21_4C5D_3E6B ^ UInt64(note.pitch) &* 0xA24B_AED4_963E_E407
    var random = SplitMix64(state: seed ^ place)
    let noteOn = NoteOn(pitch: note.pitch, velocity: note.velocity)
    let isStereo = patch.isStereo
    switch patch.source {
    case .oscillators(let source):
      let sound = OscillatorSound(source, isStereo: isStereo, noteOn: noteOn, random: &random)
      oscillators.append(sounding(sound, note, noteOn))
    case .modulated(let source):
      let sound = ModulatedSound(source, isStereo: isStereo, noteOn: noteOn, random: &random)
      modulated.append(sounding(sound, note, noteOn))
    case .string: strings.append(sounding(StringSound(noteOn: noteOn, random: &random), note, noteOn))
    case .drums: drums.append(sounding(DrumSound(noteOn: noteOn, random: &random), note, noteOn))
    }
  }

  private func sounding<Sound>(_ sound: Sound, _ note: Score.Note, _ noteOn: NoteOn) -> SoundingNote<Sound> {
    SoundingNote(sound, start: note.start, end: note.start + note.length, noteOn: noteOn, patch: patch)
  }

  /// Lets one of the sounding notes go.
  mutating func cutNote(_ index: Int) {
    switch patch.source {
    case .oscillators: oscillators.cut(index)
    case .modulated: modulated.cut(index)
    case .string: strings.cut(index)
    case .drums: drums.cut(index)
    }
  }

  /// Sets the control values of all its notes; those that are over are forgotten.
  mutating func setControls(at position: Int) {
    oscillators.setControls(at: position)
    modulated.setControls(at: position)
    strings.setControls(at: position)
    drums.setControls(at: position)
  }

  /// Adds the next samples of all its notes.
  mutating func add(
    to output: Samples, through scratch: borrowing NoteScratch, at position: Int, _ span: Span
  ) {
    oscillators.add(to: output, through: scratch, at: position, span)
    modulated.add(to: output, through: scratch, at: position, span)
    strings.add(to: output, through: scratch, at: position, span)
    drums.add(to: output, through: scratch, at: position, span)
  }
}
