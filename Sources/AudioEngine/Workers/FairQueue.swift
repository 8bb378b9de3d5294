import DequeModule

/// Who had a turn last: ties between clients go to the one whose last turn is longest ago.
struct RecentTurns {
  /// Clients remembered. Those forgotten have had none of the last turns, and so are first again.
  static let maximumClients = 4_096

  private var last: [String?: UInt64] = [:]
  private var count: UInt64 = 0

  mutating func note(_ client: String?) {
    count += 1
    last[client] = count
    guard last.count > Self.maximumClients else { return }
    let oldest = count - UInt64(Self.maximumClients / 2)
    last = last.filter { $0.value > oldest }
  }

  /// 0 for one that had none; else the later, the greater.
  func last(_ client: String?) -> UInt64 { last[client] ?? 0 }
}

/// What waits for one of few places: a queue for each client, so that however much one client asks for, another's
/// first thing is next as soon as a place is free.
struct FairQueue<Element> {
  private struct Line {
    /// Before the client's own others.
    var urgent: Deque<Element> = []
    var ordinary: Deque<Element> = []
    var count: Int { urgent.count + ordinary.count }
  }

  private var lines: [String?: Line] = [:]
  private var turns = RecentTurns()
  private(set) var count = 0

  var isEmpty: Bool { count == 0 }
  /// How much waits for each client.
  var counts: [(client: String?, count: Int)] { lines.map { ($0.key, $0.value.count) } }
  func count(of client: String?) -> Int { lines[client]?.count ?? 0 }

  mutating func append(_ element: Element, for client: String?, isUrgent: Bool = false) {
    count += 1
    if isUrgent {
      lines[client, default: Line()].urgent.append(element)
    } else {
      lines[client, default: Line()].ordinary.append(element)
    }
  }

  /// Back to the front, for what was taken and could not be done.
  mutating func putBack(_ element: Element, for client: String?) {
    count += 1
    lines[client, default: Line()].ordinary.prepend(element)
  }

  /// The next element of the client that has the least of the places, and among equals of the one whose last turn is
  /// longest ago.
  ///
  /// - Parameters:
  ///   - load: the places that a client has.
  ///   - mayBegin: whether what is not urgent may be taken of a client now.
  mutating func popNext(
    load: (String?) -> Int, mayBegin: (String?) -> Bool = { _ in true }
  ) -> (client: String?, element: Element)? {
    var best: (client: String?, rank: (Int, UInt64))?
    for (client, line) in lines where !line.urgent.isEmpty || mayBegin(client) {
      let rank = (load(client), turns.last(client))
      if best.map({ rank < $0.rank }) ?? true { best = (client, rank) }
    }
    guard let best else { return nil }
    return (best.client, pop(best.client))
  }

  /// Everything that is left, in no order.
  mutating func removeAll() -> [Element] {
    defer {
      lines = [:]
      count = 0
    }
    return lines.values.flatMap { Array($0.urgent) + Array($0.ordinary) }
  }

  private mutating func pop(_ client: String?) -> Element {
    count -= 1
    turns.note(client)
    var line = lines.removeValue(forKey: client)!
    let element = line.urgent.popFirst() ?? line.ordinary.removeFirst()
    if line.count > 0 { lines[client] = line }
    return element
  }
}
