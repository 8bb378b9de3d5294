import WireProtocol

/// Music for what happens in repositories: values to scores, the same on every machine.
package enum Composer {
  /// A piece for an event, 4 to 20 s, which the history then remembers.
  package static func piece(
    for event: RepositoryEvent, parameters: MusicalParameters, history: inout MusicHistory
  ) -> Score {
    var generator = SeededGenerator("piece:\(event.deliveryID)")
    let beat = Int((2_880_000 / parameters.tempo).rounded())
    let motif = history.motif ?? Motif(notes: [.init(step: 0, eighths: 2), .init(step: 2, eighths: 2)])
    let tonic = Key(of: event.repositoryID).tonic(notAbove: 72)
    var start = 0
    let notes = motif.notes.map { note in
      defer { start += note.eighths * beat / 2 }
      return Score.Note(
        voice: 0, start: start, length: note.eighths * beat / 2,
        pitch: tonic + parameters.scale.semitones(atStep: note.step), velocity: 90)
    }
    history.take(event, parameters, motif: motif)
    return Score(
      title: event.title, seed: generator.scoreSeed(), beat: beat, length: parameters.durationMs * 48,
      voices: [Score.Voice(role: .melody, instrument: parameters.instrument)], notes: notes)
  }

  /// What sounds while nothing happens: quiet, without an end, and of the key alone, so that any scale goes with it.
  package static func bed(repositoryID: SessionID, name: String, mapping: MusicMapping) -> Score {
    var generator = SeededGenerator("bed:\(repositoryID)")
    let tonic = Key(of: repositoryID).tonic(notAbove: 60)
    return Score(
      title: name, seed: generator.scoreSeed(), beat: 48_000, length: nil,
      voices: [Score.Voice(role: .bed, instrument: .pad, gain: 0.2, loop: 960_000)],
      notes: [Score.Note(voice: 0, start: 0, length: 480_000, pitch: tonic, velocity: 60)])
  }

  /// A time of a repository's events, a week say, in a minute.
  ///
  /// - Parameters:
  ///   - events: by time.
  ///   - from: milliseconds since 1970.
  ///   - until: milliseconds since 1970.
  /// - Returns: the music, and for each event the sample where it sounds, or would where it is left out.
  package static func replay(
    events: [(RepositoryEvent, MusicalParameters)], from: Int, until: Int, name: String, mapping: MusicMapping
  ) -> (score: Score, places: [Int]) {
    let span = max(until - from, 1)
    let places = events.map { event, _ in
      Int(Double((event.receivedMilliseconds - from).clamped(to: 0...span)) / Double(span) * 2_879_999)
    }
    let notes = zip(events, places).map { event, place in
      Score.Note(
        voice: 0, start: place, length: 12_000, pitch: Key(of: event.0.repositoryID).tonic(notAbove: 72),
        velocity: 80)
    }
    return (
      Score(
        title: name, seed: 1, beat: 24_000, length: 62 * 48_000,
        voices: [Score.Voice(role: .melody, instrument: .bell)], notes: Array(notes.prefix(1_000))), places
    )
  }
}
