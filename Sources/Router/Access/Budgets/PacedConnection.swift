/// A connection whose commands come as fast as its client's budgets allow. Used on the data plane's loop.
protocol PacedConnection: AnyObject {
  var client: ClientID { get }
  /// Its own, besides its client's.
  var budget: ConnectionBudget { get set }

  /// Carries out what waits, as far as the budgets go.
  func advance() -> PacedProgress
}

/// What has become of what waits on a connection.
enum PacedProgress {
  /// Nothing waits, and the socket is read.
  case free
  case held(hasMoved: Bool)
}
