/// A note while it is heard: its sound, through its filter and under its envelope.
struct SoundingNote<Sound: SoundGenerator> {
  /// Samples from the score's first.
  let start: Int
  /// Where it is let go.
  private let end: Int
  private let gain: Float
  private var sound: Sound
  private var envelope: Envelope
  private var segment = Segment.zero
  private var filter: NoteFilter?
  /// Whether it gives its place to another.
  private(set) var isCut = false

  init(
    _ sound: Sound, start: Int, end: Int, stroke: Stroke, patch: InstrumentPatch
  ) {
    self.start = start
    self.end = end
    gain = patch.level * stroke.gain
    envelope = Envelope(patch.envelope)
    self.sound = sound
    filter = patch.filter.map { NoteFilter($0, stroke: stroke) }
  }

  /// Whether nothing of it is heard any more.
  var isOver: Bool { envelope.isOver || sound.isOver }

  /// Goes within 5 ms.
  mutating func cut() {
    isCut = true
    envelope.cut()
  }

  /// Sets what changes slowly for the samples from `position` on.
  mutating func setControls(at position: Int, samples: Int) {
    let isReleased = position >= end
    if isReleased { envelope.release() }
    segment = envelope.next(samples)
    sound.setControls(samples)
    filter?.setControls(samples, isReleased: isReleased)
  }

  /// Makes the next samples, before the filter.
  mutating func write(to scratch: Samples, _ span: Span) {
    scratch.clear(span.count)
    sound.add(to: scratch, span)
  }

  /// The filter, whose state is the caller's to advance; nil without one.
  var lowPass: StateVariableFilter? {
    get { filter?.filter }
    set { if let newValue { filter?.filter = newValue } }
  }

  mutating func applyFilter(to scratch: Samples, _ span: Span) { filter?.apply(to: scratch, span) }

  /// Adds what came through the filter to its part's samples.
  func add(_ scratch: Samples, to part: Samples, _ span: Span) {
    let gain = gain
    let segment = segment
    if scratch.channelCount == 2 {
      for index in stride(from: 0, to: span.count * 2, by: SampleBuffer.vectorCount) {
        let gains = segment.frames(span.offset + index / 2)
        part.values[vector: index] += scratch.values[vector: index] * (gains * gain)
      }
    } else {
      for index in stride(from: 0, to: span.count, by: SampleBuffer.vectorCount) {
        let gains = segment.vector(span.offset + index)
        part.values[vector: index] += scratch.values[vector: index] * (gains * gain)
      }
    }
  }
}
