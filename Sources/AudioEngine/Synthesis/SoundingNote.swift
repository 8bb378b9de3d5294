/// A note while it is heard: its sound, through its filter and under its envelope.
struct SoundingNote<Sound: SoundGenerator> {
  /// Samples from the score's first.
  let start: Int
  /// Where it is let go.
  private let end: Int
  private let gain: Float
  private var sound: Sound
  private var envelope: Envelope
  /// The envelope and the gain.
  private var segment = LinearRamp.zero
  private var filter: NoteFilter?
  /// Whether it gives its place to another.
  private(set) var isCut = false

  init(
    _ sound: Sound, start: Int, end: Int, noteOn: NoteOn, patch: InstrumentPatch
  ) {
    self.start = start
    self.end = end
    gain = patch.level * noteOn.gain
    envelope = Envelope(patch.envelope)
    self.sound = sound
    filter = patch.filter.map { NoteFilter($0, noteOn: noteOn) }
  }

  /// Whether nothing of it is heard any more.
  var isOver: Bool { envelope.isOver || sound.isOver }

  var isFiltered: Bool { filter != nil }

  /// Goes within 5 ms.
  mutating func cut() {
    isCut = true
    envelope.cut()
  }

  /// Sets what changes slowly for the samples from `position` on.
  mutating func setControls(at position: Int, samples: Int) {
    let isReleased = position >= end
    if isReleased { envelope.release() }
    segment = envelope.next(samples).scaled(gain)
    sound.setControls(samples)
    filter?.setControls(samples, isReleased: isReleased)
  }

  /// Adds the next samples to its part's.
  mutating func add(to part: Samples, through scratch: NoteSamples, at position: Int, _ span: Span) {
    let span = own(span, at: position)
    sound.write(to: scratch, span)
    var offsets = LinearRamp.offsets(span.offset)
    if part.channelCount == 2 {
      for index in stride(from: 0, to: span.count, by: 4) {
        let gains = segment.values(offsets)
        part.add(index, left: scratch.left[four: index] * gains, right: scratch.right[four: index] * gains)
        offsets += 4
      }
    } else {
      filter?.filter.lowPass(scratch.left, count: span.count)
      for index in stride(from: 0, to: span.count, by: 4) {
        part.values[four: index] += scratch.left[four: index] * segment.values(offsets)
        offsets += 4
      }
    }
  }

  /// Has a bank compute its filter and its envelope.
  mutating func enter(
    _ bank: borrowing FilterBank, _ place: Int, through scratch: NoteSamples, at position: Int, _ span: Span
  ) {
    guard let filter = filter?.filter else { return }
    let span = own(span, at: position)
    sound.write(to: scratch, span)
    bank.take(place, scratch, filter, gain: segment, count: span.count)
  }

  /// Goes on from where the bank came to.
  mutating func leave(_ bank: borrowing FilterBank, _ place: Int) {
    if filter != nil { bank.give(place, to: &filter!.filter, gain: &segment) }
  }

  /// A note that began within the control block has had its settings since then.
  private func own(_ span: Span, at position: Int) -> Span {
    Span(offset: min(span.offset, position - start), count: span.count)
  }
}
