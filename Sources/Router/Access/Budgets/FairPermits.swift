import ServiceSupport

/// How many may work at a time, in all and of one client, and how many of one may wait.
package struct FairPermits: Sendable {
  package enum Answer: Sendable, Equatable {
    case granted
    /// Under that number.
    case waits(Int)
    case refused
  }

  private let limit: Int
  private let perClient: Int
  private let waitingPerClient: Int
  private var running: [ClientID: Int] = [:]
  private var runningCount = 0
  private var waiting: [(number: Int, client: ClientID)] = []
  private var lastNumber = 0

  package init(limit: Int, perClient: Int, waitingPerClient: Int) {
    self.limit = limit
    self.perClient = perClient
    self.waitingPerClient = waitingPerClient
  }

  package mutating func ask(for client: ClientID) -> Answer {
    if mayBegin(client) {
      begin(client)
      return .granted
    }
    guard waiting.count(where: { $0.client == client }) < waitingPerClient else { return .refused }
    lastNumber += 1
    waiting.append((lastNumber, client))
    return .waits(lastNumber)
  }

  package mutating func giveUp(_ number: Int) { waiting.removeAll { $0.number == number } }

  /// One has ended.
  ///
  /// - Returns: those who wait no more.
  package mutating func end(for client: ClientID) -> [Int] {
    runningCount -= 1
    running.countDown(client)
    var begun: [Int] = []
    while let index = waiting.firstIndex(where: { mayBegin($0.client) }) {
      let next = waiting.remove(at: index)
      begin(next.client)
      begun.append(next.number)
    }
    return begun
  }

  private func mayBegin(_ client: ClientID) -> Bool {
    runningCount < limit && running[client] ?? 0 < perClient
  }

  private mutating func begin(_ client: ClientID) {
    runningCount += 1
    running[client, default: 0] += 1
  }
}
