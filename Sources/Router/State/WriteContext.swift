import WireProtocol

/// In-memory context of a write: the sessions, undo states and waiting callers.
struct WriteContext {
  /// A caller that waits for a write.
  enum Waiter {
    case router(() -> Void)
    /// A client's command, which is given the reason where it could not be written.
    case command(SessionID, ClientID, (ErrorReport?) -> Void)
  }

  /// Sessions whose own row is written.
  var sessions: [SessionID: RoutedSession] = [:]
  /// Of those, the ones that the engine or the Router has changed.
  var changedByRouter: Set<SessionID> = []
  /// Sessions whose rows are all written again.
  var fullRewrites: [SessionID: RoutedSession] = [:]
  var undos: [SessionID: SessionUndo] = [:]
  var waiters: [Waiter] = []

  /// Removes sessions that other Routers have claimed.
  ///
  /// - Returns: the commands that waited for one of them.
  mutating func drop(_ ids: Set<SessionID>) -> [Waiter] {
    for id in ids {
      sessions[id] = nil
      changedByRouter.remove(id)
      fullRewrites[id] = nil
      undos[id] = nil
    }
    let dropped = waiters.filter { $0.isOf(ids) }
    waiters.removeAll { $0.isOf(ids) }
    return dropped
  }
}

extension WriteContext.Waiter {
  fileprivate func isOf(_ ids: Set<SessionID>) -> Bool {
    if case .command(let id, _, _) = self { ids.contains(id) } else { false }
  }
}

extension ErrorReport {
  /// A full or broken disk did not take a client's change.
  static let unwritten = ErrorReport(
    .storageFailed, "the change could not be written to disk and was not applied",
    hint: "make room on the disk of the Router's state; /ready says what is wrong", stage: .command)

  /// JetStream, which stores every change for the other Routers, did not take it.
  static let unarchived = ErrorReport(
    .storageFailed, "the change could not be written to JetStream and was not applied",
    hint: "try again in a moment; /ready says what is wrong", stage: .command)

  /// Another Router claimed the session before the change was written.
  static let overtaken = ErrorReport(
    .storageFailed, "the session has moved to another Router; the change was not applied",
    hint: "reconnect and repeat the command", stage: .command)
}
