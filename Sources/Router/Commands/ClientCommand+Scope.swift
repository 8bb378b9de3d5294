extension ClientCommand {
  /// What a client must be allowed to for this command: reading takes `listen`, everything else, what is yet
  /// to be added included, `control`.
  package var scope: Scope {
    switch action {
    case .ping, .queue(_, .show), .queue(_, .history), .engine(.session(_, .status)),
      .engine(.session(_, .why)):
      .listen
    default: .control
    }
  }
}
