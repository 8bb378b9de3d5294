import WireProtocol

/// Names sessions: a session ID in which each `*` stands for any characters, none included.
package struct SessionPattern: Sendable, Hashable {
  /// The pattern as it was written.
  package let text: String
  private let bytes: [UInt8]

  private static let star = UInt8(ascii: "*")

  /// Every session.
  package static let all = SessionPattern(unchecked: "*")

  /// That session alone.
  package init(_ session: SessionID) {
    self.init(unchecked: session.description)
  }

  /// Reads a pattern; nil where it is empty, longer than `RouterLimits.maximumPatternByteCount`, or has a
  /// character that neither a session ID nor a pattern has.
  package init?(_ text: String) {
    guard (1...RouterLimits.maximumPatternByteCount).contains(text.utf8.count),
      text.unicodeScalars.allSatisfy({ $0 == "*" || SessionID.isAllowed($0) })
    else { return nil }
    self.init(unchecked: text)
  }

  private init(unchecked text: String) {
    self.text = text
    bytes = Array(text.utf8)
  }

  /// Whether the pattern is for that session. A mismatch goes back to the last star alone, so that it takes
  /// at most the ID's length times the pattern's steps, whatever the pattern.
  package func matches(_ session: SessionID) -> Bool {
    let name = Array(session.description.utf8)
    var (inName, inPattern) = (0, 0)
    var lastStar: (inPattern: Int, inName: Int)?
    while inName < name.count {
      if inPattern < bytes.count, bytes[inPattern] == Self.star {
        lastStar = (inPattern, inName)
        inPattern += 1
      } else if inPattern < bytes.count, bytes[inPattern] == name[inName] {
        inPattern += 1
        inName += 1
      } else if let star = lastStar {
        // The star takes one character more.
        lastStar = (star.inPattern, star.inName + 1)
        inPattern = star.inPattern + 1
        inName = star.inName + 1
      } else {
        return false
      }
    }
    return bytes[inPattern...].allSatisfy { $0 == Self.star }
  }
}
