/// Which chords follow each other in a scale, by their roots' degrees: 0 is the tonic, 4 the dominant.
struct Progressions {
  /// Four chords each, to begin and to go on with.
  let openings: [[Int]]
  /// Three chords each.
  let authentic: [[Int]]
  let plagal: [[Int]]
  let half: [[Int]]
  let deceptive: [[Int]]

  func endings(_ cadence: MusicalParameters.Cadence) -> [[Int]] {
    switch cadence {
    case .authentic: authentic
    case .plagal: plagal
    case .half: half
    case .deceptive: deceptive
    }
  }

  /// Where a question stops and its answer begins.
  var dominant: Int { authentic[0][1] }

  static func of(_ scale: Scale) -> Progressions {
    switch scale {
    case .ionian:
      // I vi IV V · I IV ii V · I iii IV ii · I V vi IV
      Progressions(
        openings: [[0, 5, 3, 4], [0, 3, 1, 4], [0, 2, 3, 1], [0, 4, 5, 3]],
        authentic: [[3, 4, 0], [1, 4, 0]], plagal: [[5, 3, 0], [1, 3, 0]],
        half: [[5, 1, 4], [0, 3, 4]], deceptive: [[3, 4, 5], [1, 4, 5]])
    case .lydian:
      // I II vi iii · I V II vi: the second degree is major, the scale's own colour.
      Progressions(
        openings: [[0, 1, 5, 2], [0, 4, 1, 5], [0, 1, 4, 0], [0, 2, 5, 1]],
        authentic: [[1, 4, 0], [5, 4, 0]], plagal: [[5, 1, 0], [2, 1, 0]],
        half: [[5, 1, 4], [0, 2, 4]], deceptive: [[1, 4, 5], [1, 4, 2]])
    case .mixolydian:
      // I VII IV I · I v IV VII: the flat seventh leads home.
      Progressions(
        openings: [[0, 6, 3, 0], [0, 4, 3, 6], [0, 5, 3, 6], [0, 3, 6, 3]],
        authentic: [[3, 6, 0], [5, 6, 0]], plagal: [[6, 3, 0], [5, 3, 0]],
        half: [[0, 3, 4], [5, 3, 6]], deceptive: [[3, 6, 5], [4, 6, 5]])
    case .dorian:
      // i IV i VII · i III VII IV: the fourth degree is major, the scale's own colour.
      Progressions(
        openings: [[0, 3, 0, 6], [0, 2, 6, 3], [0, 6, 3, 4], [0, 3, 6, 2]],
        authentic: [[3, 4, 0], [2, 6, 0]], plagal: [[6, 3, 0], [2, 3, 0]],
        half: [[0, 3, 4], [2, 3, 6]], deceptive: [[3, 4, 2], [3, 6, 2]])
    case .aeolian:
      // i VI III VII · i iv VI VII
      Progressions(
        openings: [[0, 5, 2, 6], [0, 3, 5, 6], [0, 6, 5, 3], [0, 2, 6, 3]],
        authentic: [[3, 6, 0], [5, 6, 0]], plagal: [[5, 3, 0], [2, 3, 0]],
        half: [[0, 5, 4], [0, 3, 6]], deceptive: [[3, 6, 5], [0, 4, 5]])
    case .harmonicMinor:
      // i iv i V · i VI iv V: the leading note makes the dominant major.
      Progressions(
        openings: [[0, 3, 0, 4], [0, 5, 3, 4], [0, 3, 5, 4]],
        authentic: [[3, 4, 0], [5, 4, 0]], plagal: [[5, 3, 0], [0, 3, 0]],
        half: [[5, 3, 4], [0, 3, 4]], deceptive: [[3, 4, 5], [0, 4, 5]])
    case .phrygian:
      // i II i vii · i VI II i: the second degree, a semitone above, stands for the dominant.
      Progressions(
        openings: [[0, 1, 0, 6], [0, 5, 1, 0], [0, 6, 5, 1], [0, 3, 1, 2]],
        authentic: [[5, 1, 0], [6, 1, 0]], plagal: [[5, 3, 0], [6, 3, 0]],
        half: [[0, 2, 1], [0, 6, 1]], deceptive: [[6, 1, 5], [0, 1, 5]])
    }
  }
}
