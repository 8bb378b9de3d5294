/// An event as it is on disk.
package struct LoggedEvent: Sendable, Equatable {
  /// Counts the events of its repository from 1 on.
  package var number: Int
  package var event: RepositoryEvent

  package init(number: Int, event: RepositoryEvent) {
    self.number = number
    self.event = event
  }
}
