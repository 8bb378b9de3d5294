import WireProtocol

/// An event with its music, as one Router writes it at JetStream for all of them.
struct SharedEvent: Codable, Sendable {
  var number: Int
  var event: RepositoryEvent
  var parameters: MusicalParameters
  var score: Score?
  /// What the next event's music needs to know, this one included.
  var history: MusicHistory
  /// Of the repository.
  var name: String
  var language: String?
  var creator: String
  var isTest: Bool
  /// The repository that made room for this one's.
  var evicted: SessionID?
  /// When it was written, since 1970.
  var writtenMilliseconds: Int

  enum CodingKeys: String, CodingKey {
    case number, event, parameters, score, history, name, language, creator, evicted
    case isTest = "is_test"
    case writtenMilliseconds = "written_ms"
  }

  init(_ draft: EventDraft, _ composed: EventLog.Composed, _ history: MusicHistory, writtenMilliseconds: Int)
  {
    number = draft.logged.number
    event = draft.logged.event
    parameters = composed.parameters
    score = composed.score
    self.history = history
    name = draft.repository.name
    language = draft.repository.language
    creator = draft.creator.description
    isTest = draft.isTest
    evicted = draft.evicted
    self.writtenMilliseconds = writtenMilliseconds
  }

  var logged: LoggedEvent { LoggedEvent(number: number, event: event) }

  var composed: EventLog.Composed {
    EventLog.Composed(number: number, event: event, parameters: parameters, score: score)
  }

  /// - Parameter lastEventMilliseconds: of the repository's event before it.
  func draft(lastEventMilliseconds: Int) -> EventDraft {
    EventDraft(
      logged: logged, repository: repository(lastEventMilliseconds: lastEventMilliseconds),
      creator: ClientID(kept: creator), isTest: isTest, evicted: evicted)
  }

  /// With the event in it.
  func repository(lastEventMilliseconds: Int) -> EventLog.Repository {
    EventLog.Repository(
      id: event.repositoryID, name: name, language: language, lastNumber: number, lastComposed: number,
      lastEventMilliseconds: max(event.receivedMilliseconds, lastEventMilliseconds))
  }
}
