import WireProtocol

/// Music that was made of an event.
package struct GeneratedMusic: Sendable, Equatable {
  /// In which it is heard.
  package var sessionID: SessionID
  /// Of the event among its repository's.
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
