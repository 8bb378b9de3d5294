import WireProtocol

/// What a transaction carries besides its rows.
struct StateCargo {
  /// One that waits for a transaction.
  enum Waiter {
    case own(() -> Void)
    /// A client's command; told why where it could not be written.
    case command(SessionID, ClientID, (ErrorReport?) -> Void)
  }

  /// Sessions whose own row it writes.
  var sessions: [SessionID: RoutedSession] = [:]
  /// Of those, the ones that were saved for what the engine or the Router did.
  var own: Set<SessionID> = []
  /// Sessions whose rows are all written anew.
  var anew: [SessionID: RoutedSession] = [:]
  var undos: [SessionID: SessionUndo] = [:]
  var waiters: [Waiter] = []

  /// Leaves sessions out that are another Router's.
  ///
  /// - Returns: the commands that waited for one of them.
  mutating func drop(_ ids: Set<SessionID>) -> [Waiter] {
    for id in ids {
      sessions[id] = nil
      own.remove(id)
      anew[id] = nil
      undos[id] = nil
    }
    let dropped = waiters.filter { $0.isOf(ids) }
    waiters.removeAll { $0.isOf(ids) }
    return dropped
  }
}

extension StateCargo.Waiter {
  fileprivate func isOf(_ ids: Set<SessionID>) -> Bool {
    if case .command(let id, _, _) = self { ids.contains(id) } else { false }
  }
}

extension ErrorReport {
  /// What a client asked for, and a full or broken disk did not take.
  static let unwritten = ErrorReport(
    .storageFailed, "it could not be written to disk, and is not done",
    hint: "make room on the disk of the Router's state; /ready says what is wrong", stage: .command)

  /// The same of NATS, where every change is kept for the other Routers.
  static let unarchived = ErrorReport(
    .storageFailed, "it could not be written to NATS, and is not done",
    hint: "try again in a moment; /ready says what is wrong", stage: .command)

  /// The session became another Router's before it was written.
  static let overtaken = ErrorReport(
    .storageFailed, "the session has moved to another Router, and it is not done",
    hint: "connect again, and ask there", stage: .command)
}
