import WireProtocol

/// Makes words from outside safe to show: no character in them ends a line, moves a terminal's cursor, or turns
/// the direction of what follows.
public enum LogText {
  /// Bytes of one message or value. With it a line is mostly below the 4,096 bytes that a pipe takes whole.
  static let maximumByteCount = 2_000

  /// With Swift's escapes for what is not to be shown as it is, and cut where it is long.
  public static func escaped(_ text: String) -> String {
    let short = shortened(text)
    // The usual case costs one look at each byte.
    guard short.unicodeScalars.contains(where: isUnsafe) else { return short }
    var result = ""
    for scalar in short.unicodeScalars {
      switch scalar {
      case "\n": result += "\\n"
      case "\r": result += "\\r"
      case "\t": result += "\\t"
      case _ where isUnsafe(scalar): result += "\\u{\(String(scalar.value, radix: 16))}"
      default: result.unicodeScalars.append(scalar)
      }
    }
    return result
  }

  /// As a JSON string (RFC 8259, 7), with its quotes.
  static func json(_ text: String) -> String {
    var result = "\""
    for scalar in shortened(text).unicodeScalars {
      switch scalar {
      case "\"": result += "\\\""
      case "\\": result += "\\\\"
      case "\n": result += "\\n"
      case "\r": result += "\\r"
      case "\t": result += "\\t"
      case _ where isUnsafe(scalar):
        let digits = String(scalar.value, radix: 16)
        result += "\\u" + String(repeating: "0", count: 4 - digits.count) + digits
      default: result.unicodeScalars.append(scalar)
      }
    }
    return result + "\""
  }

  private static func shortened(_ text: String) -> String {
    guard text.utf8.count > maximumByteCount else { return text }
    return String(decoding: text.utf8.prefix(maximumByteCount), as: UTF8.self) + "…"
  }

  /// Controls, line and paragraph separators, and marks that turn the direction of text: all below U+FFFF.
  private static func isUnsafe(_ scalar: Unicode.Scalar) -> Bool {
    switch scalar.value {
    case 0..<0x20, 0x7F..<0xA0, 0x2028...0x202E, 0x2066...0x2069: true
    default: false
    }
  }
}
