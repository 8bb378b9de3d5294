import WireProtocol

/// To whom a session's audio goes, where several Routers share the engine: to the connection of its home, whose commands
/// carry the highest epoch. It outlasts a track that another one follows, and is forgotten with the session.
struct SessionOwner {
  let epoch: UInt64
  /// Where it has ended, nobody is sent the audio until a command with such an epoch comes.
  let connection: RouterConnection.ID
}

extension PendingRequest {
  /// What a command says of whose the session is; nil for one without an epoch.
  var claim: SessionOwner? {
    guard let epoch, case .router(let connection) = requester else { return nil }
    return SessionOwner(epoch: epoch, connection: connection)
  }
}

extension SessionDirector {
  /// Notes whose a session is, before its command is carried out.
  ///
  /// - Returns: false where the session has another home by now: the command is refused.
  func admit(_ pendingRequest: PendingRequest?, to id: SessionID) -> Bool {
    guard let claim = pendingRequest?.claim, let session = sessions[id] else { return true }
    guard let owner = session.owner, claim.epoch <= owner.epoch else {
      session.owner = claim
      return true
    }
    guard claim.epoch == owner.epoch else {
      let report = ErrorReport(
        .staleHome, "the session \(id) has another home: its epoch is \(owner.epoch), not \(claim.epoch)",
        hint: "drop the session", stage: .command)
      reject(pendingRequest, report, id)
      return false
    }
    // What is left of a home's earlier connection is carried out, and takes nothing from the later one.
    if claim.connection.isLater(than: owner.connection) || !isConnected(owner.connection) {
      session.owner = claim
    }
    return true
  }

  func isConnected(_ connection: RouterConnection.ID) -> Bool {
    routers.contains { $0.id == connection }
  }
}
