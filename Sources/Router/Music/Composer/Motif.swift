import WireProtocol

/// A short figure by which a repository is recognised: steps of the scale and a rhythm.
package struct Motif: Codable, Sendable, Equatable {
  /// Three to six.
  package var notes: [Note]

  package struct Note: Codable, Sendable, Equatable {
    /// Steps of the scale above the motif's first note, or below it.
    package var step: Int
    /// Its length in eighths (quavers).
    package var eighths: Int
  }

  /// The repository's own, which all that it is varied to stays close to.
  package init(of repository: SessionID) {
    var generator = SeededGenerator("motif:\(repository)")
    let rhythm = generator.pick(Self.rhythms)
    var steps = [0]
    var last = 0
    while steps.count < rhythm.count {
      // After a leap the melody turns round and goes by step.
      let move =
        abs(last) > 1
        ? -last.signum() * generator.within(1...2)
        : generator.pick(Self.moves) * (generator.chance(60) ? 1 : -1)
      last = Self.range.contains(steps.last! + move) ? move : -move
      steps.append(steps.last! + last)
    }
    notes = zip(steps, rhythm).map { Note(step: $0, eighths: $1) }
  }

  /// What the next event makes of it: one note or two lengths are otherwise; and where it has gone far from the
  /// repository's own, it comes back by one note.
  package func varied(for delivery: String, own: Motif) -> Motif {
    var generator = SeededGenerator("variation:\(delivery)")
    var varied = self
    let strangers = notes.indices.filter { notes[$0] != own.notes[$0] }
    if strangers.count >= Self.maximumStrangers {
      // Lengths only ever change in pairs, so they come back together.
      for index in notes.indices { varied.notes[index].eighths = own.notes[index].eighths }
      let index = generator.pick(strangers)
      varied.notes[index].step = own.notes[index].step
    } else if generator.chance(50), strangers.isEmpty {
      let index = generator.below(notes.count - 1)
      varied.notes[index].eighths = notes[index + 1].eighths
      varied.notes[index + 1].eighths = notes[index].eighths
    } else {
      let index = generator.within(1...notes.count - 1)
      let step = own.notes[index].step + (generator.chance(50) ? 1 : -1)
      varied.notes[index].step = step.clamped(to: Self.range)
    }
    return varied
  }

  /// How many of the motif's notes may differ from the repository's own.
  private static let maximumStrangers = 2
  /// Steps above the first note.
  private static let range = -3...5
  /// Mostly by step.
  private static let moves = [1, 1, 1, 1, 2, 2, 3]
  /// In eighths, at most seven, so that it can breathe within a bar.
  private static let rhythms = [
    [2, 1, 1, 2], [1, 1, 2, 3], [3, 1, 2], [1, 1, 1, 1, 2], [1, 2, 1, 2], [2, 1, 1, 1, 2], [1, 1, 1, 3],
    [3, 1, 1, 2], [2, 2, 1, 1], [1, 1, 1, 1, 1, 2], [1, 3, 1, 2], [3, 3, 1], [2, 3, 2], [1, 1, 2, 1, 1],
  ]
}

extension Motif {
  init(notes: [Note]) { self.notes = notes }

  /// Upside down.
  var inverted: Motif {
    Motif(notes: notes.map { Note(step: -$0.step, eighths: $0.eighths) })
  }

  /// Its first notes, of which it is still known.
  var head: Motif { Motif(notes: Array(notes.prefix((notes.count + 1) / 2))) }

  var eighths: Int { notes.reduce(0) { $0 + $1.eighths } }
  var lowest: Int { notes.map(\.step).min() ?? 0 }
  var highest: Int { notes.map(\.step).max() ?? 0 }
}
