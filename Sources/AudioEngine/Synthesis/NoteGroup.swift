/// The notes of one part that sound.
struct NoteGroup<Sound: SoundGenerator> {
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
  mutating func add(
    to output: Samples, through scratch: borrowing NoteScratch, at position: Int, _ span: Span
  ) {
    guard notes.first?.isFiltered == true, output.channelCount == 2 else {
      for index in notes.indices { notes[index].add(to: output, through: scratch.note, at: position, span) }
      return
    }
    for first in stride(from: 0, to: notes.count, by: FilterBank.noteCount) {
      scratch.bank.clear()
      let some = first..<min(notes.count, first + FilterBank.noteCount)
      for index in some {
        notes[index].enter(scratch.bank, index - first, through: scratch.note, at: position, span)
      }
      scratch.bank.add(to: output, count: span.count)
      for index in some { notes[index].leave(scratch.bank, index - first) }
    }
  }
}
