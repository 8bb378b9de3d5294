/// A name that events are published under, and what they are.
package struct EventTopic<Payload: Sendable>: Sendable, Hashable {
  package let name: String

  package init(_ name: String) {
    self.name = name
  }
}

extension EventTopic<LoggedEvent> {
  /// `webhook:github:push`: a delivery was accepted and is on disk.
  package static func gitHub(_ kind: RepositoryEvent.Kind) -> Self {
    Self("webhook:github:\(kind.rawValue)")
  }

  package static var everyGitHubEvent: [Self] { RepositoryEvent.Kind.allCases.map(gitHub) }
}

extension EventTopic<GeneratedMusic> {
  /// Music was made of an event, and is on disk.
  package static var musicGenerated: Self { Self("music:generated") }
}
