/// Notes of a scale that sound together, by their degrees: 0 is the tonic.
package struct Chord: Equatable, Sendable {
  /// The root first, then in thirds: 0 to 6.
  package let degrees: [Int]

  package enum Colour: Sendable {
    case triad, seventh
    /// The second above the root is added.
    case added
    /// The fourth stands for the third: neither major nor minor, and wanting to go on.
    case suspended

    fileprivate var steps: [Int] {
      switch self {
      case .triad: [0, 2, 4]
      case .seventh: [0, 2, 4, 6]
      case .added: [0, 2, 4, 1]
      case .suspended: [0, 3, 4]
      }
    }
  }

  package init(_ root: Int, _ colour: Colour = .triad) {
    degrees = colour.steps.map { (root + $0) % 7 }
  }

  package var root: Int { degrees[0] }

  package func contains(step: Int) -> Bool {
    degrees.contains(step.quotientAndRemainder(floorDividingBy: 7).remainder)
  }

  /// The chord's note that is nearest to a step of the scale; of two equally near ones the lower.
  func nearest(to step: Int) -> Int {
    for distance in 0...7 {
      if contains(step: step - distance) { return step - distance }
      if contains(step: step + distance) { return step + distance }
    }
    return step
  }

  /// The chord's next note at least a third below.
  func below(_ step: Int) -> Int {
    var lower = step - 2
    while !contains(step: lower) { lower -= 1 }
    return lower
  }
}
