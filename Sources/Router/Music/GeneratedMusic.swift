import WireProtocol

/// Music that was made of an event.
package struct GeneratedMusic: Sendable, Equatable {
  /// In which it is heard.
  package var sessionID: SessionID
  /// The event's number among its repository's.
  package var number: Int
  package var event: RepositoryEvent
  package var parameters: MusicalParameters
  /// A finite one.
  package var score: Score

  package var repositoryID: SessionID { event.repositoryID }

  package init(number: Int, event: RepositoryEvent, parameters: MusicalParameters, score: Score) {
    sessionID = event.repositoryID
    self.number = number
    self.event = event
    self.parameters = parameters
    self.score = score
  }
}

extension GeneratedMusic {
  /// The same music over another session's bed, and so in that bed's key.
  func heard(in session: SessionID) -> GeneratedMusic {
    var music = self
    music.sessionID = session
    let key = Key(of: session)
    let interval = (key.pitchClass - Key(of: repositoryID).pitchClass + 18) % 12 - 6
    music.parameters.key = key.name
    music.score.notes = score.notes.map { note in
      guard score.voices[note.voice].role != .percussion else { return note }
      var note = note
      note.pitch += interval
      if note.pitch < 0 { note.pitch += 12 }
      if note.pitch > 127 { note.pitch -= 12 }
      return note
    }
    return music
  }
}
