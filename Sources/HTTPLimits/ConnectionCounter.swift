import ServiceSupport
import Synchronization

/// How many connections a server has, in all and of each address. Thread safe.
public final class ConnectionCounter: Sendable {
  private struct State {
    var count = 0
    var counts: [String: Int] = [:]
    var refused = 0
  }

  /// The limit that a refused connection ran into.
  public enum LimitReached: Error, Sendable, Equatable {
    case all(limit: Int)
    case address(limit: Int)

    /// For people.
    public var message: String {
      switch self {
      case .all(let limit): "\(limit) connections are open already"
      case .address(let limit): "\(limit) connections of this address are open already"
      }
    }
  }

  public let maximumCount: Int
  public let maximumCountPerAddress: Int
  private let state = Mutex(State())

  public init(maximumCount: Int, maximumCountPerAddress: Int) {
    self.maximumCount = maximumCount
    self.maximumCountPerAddress = maximumCountPerAddress
  }

  public var count: Int { state.withLock { $0.count } }
  /// Since the start.
  public var refusedCount: Int { state.withLock { $0.refused } }

  /// Counts a connection; nil where it is admitted. One that is has to be given back with `leave`.
  ///
  /// - Parameter address: whose it is, such as an address or an IPv6 network; nil for what counts in all alone.
  public func enter(_ address: String?) -> LimitReached? {
    state.withLock { state in
      if state.count >= maximumCount {
        state.refused += 1
        return .all(limit: maximumCount)
      }
      if let address {
        guard state.counts[address, default: 0] < maximumCountPerAddress else {
          state.refused += 1
          return .address(limit: maximumCountPerAddress)
        }
        state.counts[address, default: 0] += 1
      }
      state.count += 1
      return nil
    }
  }

  /// A connection that was admitted has ended.
  public func leave(_ address: String?) {
    state.withLock { state in
      state.count -= 1
      if let address { state.counts.countDown(address) }
    }
  }
}
