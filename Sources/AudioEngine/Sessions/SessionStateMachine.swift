import WireProtocol

/// The states of one session and the transitions between them. Pure: it decides, the `SessionDirector` acts.
///
/// ```
/// Extracting → Streaming ⇄ Paused → (gone)        Extracting → (gone)
/// ```
/// Idle, Stopped and Error are the absence of a session, told by `ended`.
package struct SessionStateMachine: Equatable {
  package enum State: Equatable {
    /// The source is being opened; it will begin paused where that was asked for.
    case extracting(startsPaused: Bool)
    case streaming
    case paused
  }

  package private(set) var state: State

  package init(startsPaused: Bool) { state = .extracting(startsPaused: startsPaused) }

  /// The first packet is there.
  ///
  /// - Returns: whether sound begins now.
  package mutating func becomeReady() -> Bool {
    guard case .extracting(let startsPaused) = state else { return false }
    state = startsPaused ? .paused : .streaming
    return !startsPaused
  }

  /// What `pause` needs: there is sound to be paused.
  package func requireStreaming() throws(ErrorReport) {
    guard state == .streaming else { throw invalidState("pause", "is not streaming") }
  }

  /// What `resume` needs.
  package func requirePaused() throws(ErrorReport) {
    guard state == .paused else { throw invalidState("resume", "is not paused") }
  }

  package mutating func pause() { state = .paused }
  package mutating func resume() { state = .streaming }

  /// Seek and volume need a place on a timeline.
  package func requirePlace(for command: String) throws(ErrorReport) {
    if case .extracting = state { throw invalidState(command, "is still being opened") }
  }

  var visible: SessionSnapshot.State {
    switch state {
    case .extracting: .extracting
    case .streaming: .streaming
    case .paused: .paused
    }
  }

  private func invalidState(_ command: String, _ why: String) -> ErrorReport {
    ErrorReport(
      .invalidState, "\(command): the session \(why)", hint: "ask for status to see its state",
      stage: .command)
  }
}
