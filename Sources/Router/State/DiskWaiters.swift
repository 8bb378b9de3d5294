import ServiceSupport

/// The commands that wait for the disk: how many, in all and of each client.
package struct DiskWaiters {
  private var counts: [ClientID: Int] = [:]
  package private(set) var count = 0

  package init() {}

  /// - Throws: `overloaded` where one more may not wait.
  package func requireRoom(for client: ClientID) throws(RequestError) {
    guard client != .router else { return }
    let own = counts[client, default: 0]
    guard own < RouterLimits.maximumDiskWaitersPerClient else {
      throw RequestError(
        .overloaded, "\(own) commands of this client wait for the disk, the most that may",
        hint: "wait for the answers to those before")
    }
    guard count < RouterLimits.maximumDiskWaiters else {
      throw RequestError(
        .overloaded, "\(count) commands wait for the disk, the most that may", hint: "try again in a moment")
    }
  }

  package mutating func enter(_ client: ClientID) throws(RequestError) {
    try requireRoom(for: client)
    add(client)
  }

  package mutating func add(_ client: ClientID) {
    counts[client, default: 0] += 1
    count += 1
  }

  package mutating func leave(_ client: ClientID) {
    guard counts[client] != nil else { return }
    counts.countDown(client)
    count -= 1
  }
}
