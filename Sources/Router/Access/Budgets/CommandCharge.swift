/// One command's part of its client's budget, from when it was received until it is answered. Used on the data
/// plane's loop.
final class CommandCharge {
  private let budgets: ClientBudgets
  private let client: ClientID
  private weak var connection: (any PacedConnection)?
  private var cost = 0
  private var hasEnded = false

  /// - Parameters:
  ///   - connection: whose it is, where it came over a WebSocket.
  ///   - cost: what it costs as far as that is known.
  ///   - reserved: how much of that was taken before.
  init(
    _ budgets: ClientBudgets, _ client: ClientID, _ connection: (any PacedConnection)?, cost: Int,
    reserved: Int
  ) {
    self.budgets = budgets
    self.client = client
    self.connection = connection
    take(cost, reserved: reserved)
  }

  /// Takes what the command turns out to cost besides.
  func add(_ more: Int) {
    if more > 0, !hasEnded { take(more, reserved: 0) }
  }

  private func take(_ more: Int, reserved: Int) {
    cost += more
    budgets.spend(more, reserved: reserved, client)
    budgets.countInFlight(more, client)
    connection?.budget.spend(more, now: budgets.now())
    connection?.budget.countInFlight(more)
  }

  /// The command is answered; whatever else answers it counts no more.
  func end() {
    guard !hasEnded else { return }
    hasEnded = true
    budgets.countInFlight(-cost, client)
    connection?.budget.countInFlight(-cost)
  }
}
