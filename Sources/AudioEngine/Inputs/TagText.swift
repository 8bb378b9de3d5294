import WireProtocol

/// Text from a stranger's file, made fit to be shown.
package enum TagText {
  /// UTF-8 where it is, else Latin-1, which old tags are in and every byte is a character of.
  ///
  /// - Parameter isCut: the last character may have been cut in two, and is left out then.
  package static func decoded(_ bytes: UnsafeRawBufferPointer, isCut: Bool) -> String {
    var whole = bytes[...]
    if isCut {
      while let last = whole.last, last & 0xC0 == 0x80 { whole = whole.dropLast() }
      if let last = whole.last, last >= 0xC0 { whole = whole.dropLast() }
    }
    return String(validating: whole, as: UTF8.self)
      ?? String(String.UnicodeScalarView(bytes.map { Unicode.Scalar($0) }))
  }

  /// Without control characters and space around it, and no longer than a tag may be; nil where nothing is
  /// left. Counted in scalars: a character may be made of any number of them.
  package static func bounded(_ text: String) -> String? {
    bounded(text, maximumScalarCount: WireLimits.maximumTagScalarCount)
  }

  /// The same for a text that may have another length.
  static func bounded(_ text: String, maximumScalarCount: Int) -> String? {
    var scalars = String.UnicodeScalarView()
    var count = 0
    for scalar in text.unicodeScalars {
      let isSpace = scalar.properties.isWhitespace || scalar.properties.generalCategory == .control
      if isSpace, scalars.isEmpty { continue }
      scalars.append(isSpace ? " " : scalar)
      count += 1
      if count == maximumScalarCount { break }
    }
    while scalars.last == " " { scalars.removeLast() }
    return scalars.isEmpty ? nil : String(scalars)
  }
}
