/// How fast a repository's music is.
package enum Tempo {
  /// Beats a minute that are ever chosen.
  package static let range = 60.0...180.0
  /// Commits an hour that are halfway from the slowest to the fastest.
  private static let middle = 8.0

  /// A logistic curve in the rate's logarithm: every rate has a tempo of its own, from the slowest for none towards
  /// the fastest. With roots, which are the same on every machine (IEEE 754), in place of logarithms.
  package static func beatsPerMinute(
    commitsPerHour: Double, slowest: Double = range.lowerBound, fastest: Double = range.upperBound
  ) -> Double {
    let root = max(commitsPerHour, 0).squareRoot()
    return slowest + (fastest - slowest) * (root / (root + middle.squareRoot()))
  }
}
