import ServiceSupport

/// The bytes of bodies that are being read, by the address that they come from. Where there is no room for more, the
/// oldest body of the address with the most bytes is evicted: an honest body is read within moments, and one that is
/// held open is soon the oldest.
package struct WebhookBodyBudget: Sendable {
  private struct Body {
    var address: ClientID
    var byteCount = 0
    /// Of those since the last time they were looked at.
    var recentByteCount = 0
    /// Its signature is being looked at: nothing takes its room.
    var isWhole = false
  }

  /// What becomes of bytes that have come.
  package enum Verdict: Sendable, Equatable {
    /// They have room.
    case taken
    /// They have room once those bodies are evicted.
    case evicting([Int])
    /// The body itself is evicted.
    case refused
  }

  private let byteLimit: Int
  private let addressByteLimit: Int
  private var bodies: [Int: Body] = [:]
  private var byteCounts: [ClientID: Int] = [:]
  private var bodyCounts: [ClientID: Int] = [:]
  /// The oldest has the lowest number.
  private var lastNumber = 0
  package private(set) var byteCount = 0

  package init(
    byteLimit: Int = RouterLimits.webhookBodiesByteCount,
    addressByteLimit: Int = RouterLimits.webhookAddressByteCount
  ) {
    self.byteLimit = byteLimit
    self.addressByteLimit = addressByteLimit
  }

  /// A body begins.
  ///
  /// - Returns: its number, and the body that is evicted for it.
  package mutating func begin(from address: ClientID) -> (number: Int, evicted: Int?) {
    var victim: Int?
    if bodyCounts[address] ?? 0 >= RouterLimits.webhookAddressBodyCount {
      victim = oldest(of: address)
      if let victim { end(victim) }
    }
    lastNumber += 1
    bodies[lastNumber] = Body(address: address)
    bodyCounts[address, default: 0] += 1
    return (lastNumber, victim)
  }

  /// Bytes of a body have come.
  package mutating func add(_ count: Int, to number: Int) -> Verdict {
    guard let address = bodies[number]?.address else { return .refused }
    var victims: [Int] = []
    while true {
      let isAddressFull = (byteCounts[address] ?? 0) + count > addressByteLimit
      guard isAddressFull || byteCount + count > byteLimit else { break }
      let most = isAddressFull ? address : byteCounts.max { $0.value < $1.value }?.key
      guard let most, let victim = oldest(of: most), victim != number else {
        end(number)
        return .refused
      }
      end(victim)
      victims.append(victim)
    }
    bodies[number]?.byteCount += count
    bodies[number]?.recentByteCount += count
    byteCounts[address, default: 0] += count
    byteCount += count
    return victims.isEmpty ? .taken : .evicting(victims)
  }

  /// Whether enough has come since the last time.
  package mutating func keepsPace(_ number: Int) -> Bool {
    guard let body = bodies[number], !body.isWhole else { return true }
    bodies[number]?.recentByteCount = 0
    return body.recentByteCount >= RouterLimits.webhookPaceByteCount
  }

  /// All of a body has come.
  package mutating func finish(_ number: Int) { bodies[number]?.isWhole = true }

  /// A body is held no more.
  package mutating func end(_ number: Int) {
    guard let body = bodies.removeValue(forKey: number) else { return }
    byteCount -= body.byteCount
    byteCounts.countDown(body.address, by: body.byteCount)
    bodyCounts.countDown(body.address)
  }

  private func oldest(of address: ClientID) -> Int? {
    bodies.lazy.filter { $0.value.address == address && !$0.value.isWhole }.map(\.key).min()
  }
}
