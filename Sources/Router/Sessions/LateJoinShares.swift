/// How much of its last seconds each session may keep where not all can keep all: each client has its part, and of
/// that the sessions that somebody hears come first. All of one kind keep the same part of their 5 s.
package struct LateJoinShares {
  /// What one session would keep.
  package struct Wish {
    package var client: ClientID
    package var byteCount: Int
    package var isHeard: Bool

    package init(client: ClientID, byteCount: Int, isHeard: Bool) {
      self.client = client
      self.byteCount = byteCount
      self.isHeard = isHeard
    }
  }

  private struct Row {
    var heard = 0
    var unheard = 0
    var share = 0
    var wish: Int { min(heard + unheard, RouterLimits.clientLateJoinByteCount) }
    var heardPart: Double { Self.part(share, of: heard) }
    var unheardPart: Double { Self.part(max(0, share - heard), of: unheard) }

    private static func part(_ share: Int, of wish: Int) -> Double {
      wish > share ? Double(share) / Double(wish) : 1
    }
  }

  private var rows: [ClientID: Row] = [:]
  /// Whether somebody keeps less than it would.
  package private(set) var isScarce = false

  package init(_ wishes: some Sequence<Wish>) {
    for wish in wishes {
      if wish.isHeard {
        rows[wish.client, default: Row()].heard += wish.byteCount
      } else {
        rows[wish.client, default: Row()].unheard += wish.byteCount
      }
    }
    // Who wants little gets it, and what they leave is shared by those who want more.
    var left = RouterLimits.allLateJoinByteCount
    let byWish = rows.sorted { $0.value.wish < $1.value.wish }
    for (index, (client, row)) in byWish.enumerated() {
      let share = min(row.wish, left / (byWish.count - index))
      left -= share
      rows[client]?.share = share
      if share < row.heard + row.unheard { isScarce = true }
    }
  }

  /// What a session may keep.
  package func byteCount(for wish: Wish) -> Int {
    guard let row = rows[wish.client] else { return RouterLimits.lateJoinByteCount }
    let part = wish.isHeard ? row.heardPart : row.unheardPart
    return part < 1 ? Int(Double(wish.byteCount) * part) : RouterLimits.lateJoinByteCount
  }
}
