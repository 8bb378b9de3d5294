/// What somebody may do. Each scope includes those before it.
package enum Scope: String, Sendable, CaseIterable, Comparable {
  /// Hear a session and see its state.
  case listen
  /// Change what a session plays, look for media.
  case control
  /// See what only those who run the Router are to see.
  case admin

  package static func < (left: Scope, right: Scope) -> Bool {
    left.rank < right.rank
  }

  /// This scope and all that it includes, the smallest first.
  package var included: [Scope] { Self.allCases.filter { $0 <= self } }

  private var rank: Int {
    switch self {
    case .listen: 0
    case .control: 1
    case .admin: 2
    }
  }
}
