import WireProtocol

/// When the notes of one voice begin.
struct PartSchedule {
  /// By start.
  private let notes: [Score.Note]
  private let loop: Int?
  /// The next note to begin.
  private var index = 0
  /// What starts are counted from, in the renderer's samples.
  private var origin: Int

  /// - Parameters:
  ///   - notes: of this voice only.
  ///   - loop: samples after which they repeat; nil for once.
  ///   - origin: the renderer's position of the score's first sample.
  ///   - start: no note begins before it.
  init(_ notes: [Score.Note], loop: Int?, origin: Int, start: Int) {
    let order = notes.indices.sorted { (notes[$0].start, $0) < (notes[$1].start, $1) }
    self.notes = order.map { notes[$0] }
    self.loop = loop
    self.origin = origin
    if let loop, start > origin, !notes.isEmpty { self.origin += (start - origin) / loop * loop }
    while let next = nextStart, next < start { _ = takeNote() }
  }

  /// Where the next note begins; nil after the last.
  var nextStart: Int? { index < notes.count ? origin + notes[index].start : nil }

  /// How many begin at `position`.
  func startCount(at position: Int) -> Int {
    notes[index...].prefix { origin + $0.start == position }.count
  }

  /// The next note, its start in the renderer's samples.
  mutating func takeNote() -> Score.Note {
    var note = notes[index]
    note.start += origin
    index += 1
    if index == notes.count, let loop {
      index = 0
      origin += loop
    }
    return note
  }
}
