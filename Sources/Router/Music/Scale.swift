/// Seven notes between a tonic and its octave. From dark to bright.
package enum Scale: String, Codable, Sendable, CaseIterable {
  case phrygian, harmonicMinor, aeolian, dorian, mixolydian, ionian, lydian

  /// Semitones above the tonic.
  package var semitones: [Int] {
    switch self {
    case .phrygian: [0, 1, 3, 5, 7, 8, 10]
    case .harmonicMinor: [0, 2, 3, 5, 7, 8, 11]
    case .aeolian: [0, 2, 3, 5, 7, 8, 10]
    case .dorian: [0, 2, 3, 5, 7, 9, 10]
    case .mixolydian: [0, 2, 4, 5, 7, 9, 10]
    case .ionian: [0, 2, 4, 5, 7, 9, 11]
    case .lydian: [0, 2, 4, 6, 7, 9, 11]
    }
  }

  /// Semitones from the tonic to a note so many steps above it, or below it where negative.
  package func semitones(atStep step: Int) -> Int {
    let (octave, degree) = step.quotientAndRemainder(floorDividingBy: 7)
    return 12 * octave + semitones[degree]
  }
}

extension Int {
  /// Division that rounds down, so that the remainder is never negative.
  func quotientAndRemainder(floorDividingBy divisor: Int) -> (quotient: Int, remainder: Int) {
    let (quotient, remainder) = quotientAndRemainder(dividingBy: divisor)
    return remainder < 0 ? (quotient - 1, remainder + divisor) : (quotient, remainder)
  }

  func clamped(to range: ClosedRange<Int>) -> Int {
    Swift.min(Swift.max(self, range.lowerBound), range.upperBound)
  }
}

extension Double {
  func clamped(to range: ClosedRange<Double>) -> Double {
    Swift.min(Swift.max(self, range.lowerBound), range.upperBound)
  }

  /// To a thousandth, which is read more easily and means as much.
  var toThousandths: Double { (self * 1_000).rounded() / 1_000 }
}
