/// Strangers' words as they are shown to others: one line, bounded, and without characters that have a reader see
/// something else than what is there.
package enum OneLine {
  /// - Parameter scalarLimit: what is longer is cut, and says so with an ellipsis.
  package static func clean(_ text: some StringProtocol, scalarLimit: Int) -> String {
    var line = String.UnicodeScalarView()
    var count = 0
    var isSpaceOwed = false
    for scalar in text.unicodeScalars {
      if isSpace(scalar) {
        isSpaceOwed = count > 0
        continue
      }
      guard !isHidden(scalar) else { continue }
      guard count + (isSpaceOwed ? 1 : 0) < scalarLimit else {
        if !line.isEmpty { line.removeLast() }
        line.append("…")
        break
      }
      if isSpaceOwed {
        line.append(" ")
        count += 1
        isSpaceOwed = false
      }
      line.append(scalar)
      count += 1
    }
    return String(line)
  }

  /// The first line that has anything on it.
  package static func first(of text: String, scalarLimit: Int) -> String {
    for line in text.split(whereSeparator: \.isNewline) {
      let words = clean(line, scalarLimit: scalarLimit)
      if !words.isEmpty { return words }
    }
    return ""
  }

  private static func isSpace(_ scalar: Unicode.Scalar) -> Bool {
    scalar.properties.isWhitespace || scalar.properties.generalCategory == .control
  }

  /// Controls of writing direction, zero widths and other formats (UAX 9, UTS 39), but the joiner of emoji.
  private static func isHidden(_ scalar: Unicode.Scalar) -> Bool {
    switch scalar.properties.generalCategory {
    case .format: scalar != "\u{200D}"
    case .surrogate, .privateUse, .unassigned: true
    default: false
    }
  }
}
