import WireProtocol

/// A session in which several repositories are heard: what `--github-station` names.
package struct GroupStation: Sendable, Equatable {
  package let id: SessionID
  package let source: GitHubSource

  /// Reads `ID=owner/name` or `ID=owner/*`; nil for what is none.
  package init?(_ text: String) {
    let parts = text.split(separator: "=", maxSplits: 1).map(String.init)
    guard parts.count == 2, let id = try? SessionID(parts[0]), let source = GitHubSource(parts[1]),
      // That one is a repository's own.
      !parts[0].allSatisfy(\.isNumber)
    else { return nil }
    self.id = id
    self.source = source
  }
}

extension GeneratedMusic {
  /// The same over another session's bed, and so in that one's key.
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
