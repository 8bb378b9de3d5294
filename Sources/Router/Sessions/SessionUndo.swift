import WireProtocol

/// What a session was before clients changed it, until the disk has confirmed what they asked for.
struct SessionUndo {
  let session: RoutedSession
  private var plan: Playback.Plan
  /// What the engine has said since. A transaction takes milliseconds, so that these are few.
  private(set) var events: [EngineEvent] = []

  init(_ session: RoutedSession) {
    self.session = session
    plan = session.playback.plan
  }

  var hasEvents: Bool { !events.isEmpty }

  mutating func append(_ event: EngineEvent) {
    events.append(event)
  }

  /// A play or prepare of before has been sent.
  mutating func sent(_ action: EngineCommand.SessionAction, _ requestID: String) {
    plan.noteSent(action, requestID)
  }

  /// One of before comes to nothing.
  mutating func drop(_ tag: String?) {
    plan.drop(tag)
  }

  mutating func engineWentAway() {
    plan.loseEngine()
  }

  /// The session is as it was. What the engine has said since is to be followed again.
  func restore() {
    // Without its rows the queue was on disk, and is read again.
    session.playback.plan = plan
  }
}
