import Collections

/// A queue that serves clients in turn, and the elements of one client in the order in which they came.
package struct RoundRobinQueue<Element> {
  private var turns: Deque<ClientID> = []
  private var waiting: [ClientID: Deque<Element>] = [:]

  package init() {}

  package var isEmpty: Bool { turns.isEmpty }
  package var count: Int { waiting.values.reduce(0) { $0 + $1.count } }

  package func contains(_ client: ClientID) -> Bool { waiting[client] != nil }

  package mutating func append(_ element: Element, of client: ClientID) {
    if waiting[client] == nil { turns.append(client) }
    waiting[client, default: []].append(element)
  }

  /// Takes the first that may have its turn, whose client is then the last.
  package mutating func popFirst(where mayGo: (ClientID, Element) -> Bool) -> Element? {
    for (place, client) in turns.enumerated() {
      guard let index = waiting[client]?.firstIndex(where: { mayGo(client, $0) }),
        let element = waiting[client]?.remove(at: index)
      else { continue }
      turns.remove(at: place)
      if waiting[client]?.isEmpty == true { waiting[client] = nil } else { turns.append(client) }
      return element
    }
    return nil
  }

  package mutating func removeAll(of client: ClientID, where isGone: (Element) -> Bool) {
    waiting[client]?.removeAll(where: isGone)
    guard waiting[client]?.isEmpty == true else { return }
    waiting[client] = nil
    turns.removeAll { $0 == client }
  }
}
