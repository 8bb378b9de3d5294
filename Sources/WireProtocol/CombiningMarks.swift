/// Marks that combine with the character before them. Swift compares, hashes and lowercases texts by their canonical
/// form, for which it sorts a row of marks in quadratic time: 20,000 of them hold a thread for seconds. So no text of
/// a stranger's comes in that has more in a row than the stream-safe format has (Unicode Standard Annex 15, section
/// 13).
public struct CombiningMarks {
  private var count = 0

  /// Checks JSON before anything compares what is in it: its characters and its `\u` escapes.
  ///
  /// - Parameter maximum: how many marks may be in a row.
  /// - Throws: `invalid_json` where too many marks are in a row, and where it is not UTF-8: what is decoded as
  ///   something else holds other characters than were looked at.
  public static func check(
    json bytes: [UInt8], maximum: Int = WireLimits.maximumCombiningMarks
  ) throws(ErrorReport) {
    var marks = CombiningMarks()
    var index = 0
    while index < bytes.count {
      let byte = bytes[index]
      let next: (scalar: UInt32, byteCount: Int)?
      if byte == UInt8(ascii: "\\") {
        next = escape(bytes[index...])
      } else if byte >= 0x80 {
        next = character(bytes[index...])
      } else {
        next = byte == 0 ? nil : (UInt32(byte), 1)
      }
      guard let next else {
        throw ErrorReport(
          .invalidJSON, "the JSON is not UTF-8 without zero bytes", hint: "encode it as UTF-8",
          stage: .command)
      }
      guard marks.take(next.scalar, maximum) else {
        throw ErrorReport(
          .invalidJSON, "the JSON has over \(maximum) combining marks in a row",
          hint: "no language has so many on a letter", stage: .command)
      }
      index += next.byteCount
    }
  }

  /// Whether no more marks are in a row than may be.
  public static func areFew(in text: String) -> Bool {
    guard !text.utf8.allSatisfy({ $0 < 0x80 }) else { return true }
    var marks = CombiningMarks()
    return text.unicodeScalars.allSatisfy { marks.take($0.value, WireLimits.maximumCombiningMarks) }
  }

  /// Takes the next character.
  ///
  /// - Returns: false for one mark too many.
  private mutating func take(_ scalar: UInt32, _ maximum: Int) -> Bool {
    count = Self.isMark(scalar) ? count + 1 : 0
    return count <= maximum
  }

  private static func isMark(_ scalar: UInt32) -> Bool {
    switch scalar {
    // No mark is below these, among Chinese characters, or among Hangul.
    case 0..<0x300, 0x3100..<0xA66F, 0xAC00..<0xFB1E: false
    // Each stands for two marks, and is none by its own class.
    case 0xF73, 0xF75, 0xF81: true
    default: Unicode.Scalar(scalar)?.properties.canonicalCombiningClass ?? .notReordered != .notReordered
    }
  }

  // MARK: Bytes

  /// An escape; of another kind than `\u` no mark. What is wrong with it is the decoder's to say.
  private static func escape(_ bytes: ArraySlice<UInt8>) -> (scalar: UInt32, byteCount: Int) {
    guard let unit = unit(bytes) else { return (0, min(2, bytes.count)) }
    guard UTF16.isLeadSurrogate(unit), let low = self.unit(bytes.dropFirst(6)), UTF16.isTrailSurrogate(low)
    else { return (UInt32(unit), 6) }
    return (0x10000 + (UInt32(unit) - 0xD800) << 10 + UInt32(low) - 0xDC00, 12)
  }

  private static func unit(_ bytes: ArraySlice<UInt8>) -> UInt16? {
    let start = bytes.startIndex
    guard bytes.count >= 6, bytes[start] == UInt8(ascii: "\\"), bytes[start + 1] == UInt8(ascii: "u") else {
      return nil
    }
    var unit: UInt16 = 0
    for byte in bytes[(start + 2)..<(start + 6)] {
      guard let digit = byte.hexadecimalDigit else { return nil }
      unit = unit << 4 | UInt16(digit)
    }
    return unit
  }

  /// A character of several bytes; nil where it is not whole.
  private static func character(_ bytes: ArraySlice<UInt8>) -> (scalar: UInt32, byteCount: Int)? {
    let lead = bytes[bytes.startIndex]
    let count =
      switch lead {
      case 0xC2...0xDF: 2
      case 0xE0...0xEF: 3
      case 0xF0...0xF4: 4
      default: 0
      }
    guard count > 0, bytes.count >= count else { return nil }
    var scalar = UInt32(lead) & (0x7F >> UInt32(count))
    for byte in bytes.dropFirst().prefix(count - 1) {
      guard byte & 0xC0 == 0x80 else { return nil }
      scalar = scalar << 6 | UInt32(byte & 0x3F)
    }
    return (scalar, count)
  }
}

extension UInt8 {
  /// What an ASCII character is as a hexadecimal digit.
  var hexadecimalDigit: UInt8? {
    switch self {
    case UInt8(ascii: "0")...UInt8(ascii: "9"): self - UInt8(ascii: "0")
    case UInt8(ascii: "a")...UInt8(ascii: "f"): self - UInt8(ascii: "a") + 10
    case UInt8(ascii: "A")...UInt8(ascii: "F"): self - UInt8(ascii: "A") + 10
    default: nil
    }
  }
}
