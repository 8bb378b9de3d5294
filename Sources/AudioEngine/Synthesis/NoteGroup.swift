/// The notes of one part that sound.
struct NoteGroup<Sound: SoundGenerator> {
  /// How many notes are made at a time, each in its own samples.
  static var scratchCount: Int { 4 }
  /// From one's samples to the next one's: left and right of a control block.
  static var scratchDistance: Int { 2 * ControlBlock.sampleCount }

  /// In the order of their beginning.
  private var notes: [SoundingNote<Sound>] = []

  var isEmpty: Bool { notes.isEmpty }

  /// Where each began; nil for one that gives its place to another.
  var starts: [Int?] { notes.map { $0.isCut ? nil : $0.start } }

  mutating func append(_ note: SoundingNote<Sound>) {
    var note = note
    note.setControls(
      at: note.start, samples: ControlBlock.sampleCount - note.start % ControlBlock.sampleCount)
    notes.append(note)
  }

  mutating func cut(_ index: Int) { notes[index].cut() }

  /// Sets the control values of all; those that are over are forgotten.
  mutating func setControls(at position: Int) {
    if notes.contains(where: \.isOver) { notes.removeAll(where: \.isOver) }
    for index in notes.indices { notes[index].setControls(at: position, samples: ControlBlock.sampleCount) }
  }

  /// Adds the next samples of all.
  mutating func add(to output: Samples, through scratch: Samples, at position: Int, _ span: Span) {
    for first in stride(from: 0, to: notes.count, by: Self.scratchCount) {
      let some = first..<min(notes.count, first + Self.scratchCount)
      for index in some {
        notes[index].write(to: own(scratch, index - first), spanOf(index, at: position, span))
      }
      filter(some, scratch, span)
      for index in some {
        notes[index].add(own(scratch, index - first), to: output, spanOf(index, at: position, span))
      }
    }
  }

  private mutating func filter(_ some: Range<Int>, _ scratch: Samples, _ span: Span) {
    let first = some.lowerBound
    guard some.count > 1, scratch.channelCount == 2, let filter = notes[first].lowPass else {
      for index in some { notes[index].applyFilter(to: own(scratch, index - first), span) }
      return
    }
    // Where there is no note, a filter that lets nothing through.
    let none = StateVariableFilter()
    let count = some.count
    var filters = (
      filter, notes[first + 1].lowPass ?? none, count > 2 ? notes[first + 2].lowPass ?? none : none,
      count > 3 ? notes[first + 3].lowPass ?? none : none
    )
    StateVariableFilter.lowPass(&filters, scratch, distance: Self.scratchDistance, count: span.count)
    notes[first].lowPass = filters.0
    notes[first + 1].lowPass = filters.1
    if count > 2 { notes[first + 2].lowPass = filters.2 }
    if count > 3 { notes[first + 3].lowPass = filters.3 }
  }

  private func own(_ scratch: Samples, _ index: Int) -> Samples {
    scratch.moved(index * Self.scratchDistance)
  }

  private func spanOf(_ index: Int, at position: Int, _ span: Span) -> Span {
    // A note that began within the control block has had its settings since then.
    Span(offset: min(span.offset, position - notes[index].start), count: span.count)
  }
}
