/// What a composer has to know of a repository's past.
package struct MusicHistory: Codable, Sendable, Equatable {
  /// Events that became music.
  package private(set) var eventCount = 0
  /// Commits, each of which counts half as much after every hour.
  private var recentCommits = 0.0
  private var lastMilliseconds: Int?
  package private(set) var previousParameters: MusicalParameters?
  /// The motif as it was heard last.
  package private(set) var motif: Motif?
  /// Whether a piece ended with a question that no success has answered yet.
  package private(set) var isUnresolved = false

  package init() {}

  /// Commits an hour, that event's included: those of the past, weighed by how long ago they were, as though they
  /// had always come as often. Well defined for the first event.
  package func commitsPerHour(with event: RepositoryEvent) -> Double {
    commits(with: event) * Self.perHour
  }

  /// Remembers an event that was made into music.
  package mutating func take(_ event: RepositoryEvent, _ parameters: MusicalParameters, motif: Motif) {
    recentCommits = commits(with: event)
    lastMilliseconds = max(event.receivedMilliseconds, lastMilliseconds ?? .min)
    eventCount += 1
    previousParameters = parameters
    self.motif = motif
    switch parameters.cadence {
    case .half, .deceptive: isUnresolved = true
    case .authentic: isUnresolved = false
    // Comes to rest, and answers nothing.
    case .plagal: break
    }
  }

  /// Only pushes count: a pull request's commits were pushed before.
  private func commits(with event: RepositoryEvent) -> Double {
    let new = event.kind == .push ? Double(max(event.commits, 0)) : 0
    guard let lastMilliseconds else { return new }
    let elapsed = event.receivedMilliseconds.subtractingReportingOverflow(lastMilliseconds)
    return recentCommits * Halving.factor(after: elapsed.overflow ? .max : max(elapsed.partialValue, 0)) + new
  }

  /// ln 2: of commits that come evenly at a rate, that much of a whole hour's is remembered at once.
  private static let perHour = 0.693_147_180_559_945_3
}

/// Exponential decay by half an hour, in arithmetic that is the same on every machine (`exp2` is not).
enum Halving {
  private static let hour = 3_600_000

  /// 2 to the power of −elapsed/hour.
  static func factor(after elapsedMilliseconds: Int) -> Double {
    let (hours, rest) = elapsedMilliseconds.quotientAndRemainder(dividingBy: hour)
    guard hours < 64 else { return 0 }
    var factor = 1 / Double(1 << hours)
    // The fraction's binary digits, each with its root of one half: 2^(−1/2), 2^(−1/4), …
    var root = 0.5.squareRoot()
    var remainder = rest
    for _ in 0..<24 {
      remainder *= 2
      if remainder >= hour {
        factor *= root
        remainder -= hour
      }
      root = root.squareRoot()
    }
    return factor
  }
}
