import WireProtocol

/// Cuts the metadata blocks out of a station's bytes: after each interval of audio comes one byte, and sixteen times as
/// many bytes of text as it says (the SHOUTcast protocol, which Icecast speaks too).
package struct ICYSplitter {
  private enum State {
    case audio(left: Int)
    case length
    case block(left: Int)
  }

  private let interval: Int
  private var state: State
  private var block: [UInt8] = []
  /// A block was no text: the server sends none, whatever it says, and all is audio.
  private var isPlain = false
  /// Audio that was taken for a block.
  private var mistaken: ArraySlice<UInt8> = []

  /// - Parameter interval: bytes of audio between two blocks, at least 1.
  package init(interval: Int) {
    self.interval = interval
    state = .audio(left: interval)
  }

  /// Audio that was taken for a block and goes before what is read next, at most `destination.count` bytes of it.
  package mutating func takeMistaken(into destination: UnsafeMutableRawBufferPointer) -> Int {
    let count = min(destination.count, mistaken.count)
    destination.copyBytes(from: mistaken.prefix(count))
    mistaken = mistaken.dropFirst(count)
    return count
  }

  /// How many bytes to read at most, so that what is read ends where a block does.
  package var maximumReadByteCount: Int {
    if isPlain { return .max }
    switch state {
    case .audio(let left): return left
    case .length: return 1
    case .block(let left): return left
    }
  }

  /// Takes what was read, which is no more than `maximumReadByteCount`.
  ///
  /// - Returns: how many bytes of audio stand at its beginning, and the text of a block that ends with it.
  package mutating func take(_ bytes: UnsafeRawBufferPointer) -> (audioByteCount: Int, block: [UInt8]?) {
    guard !isPlain, !bytes.isEmpty else { return (bytes.count, nil) }
    switch state {
    case .audio(let left):
      state = left > bytes.count ? .audio(left: left - bytes.count) : .length
      return (bytes.count, nil)
    case .length:
      block = [bytes[0]]
      state = bytes[0] > 0 ? .block(left: Int(bytes[0]) * 16) : .audio(left: interval)
      return (0, nil)
    case .block(let left):
      block.append(contentsOf: bytes)
      guard left == bytes.count else {
        state = .block(left: left - bytes.count)
        return (0, nil)
      }
      state = .audio(left: interval)
      guard Self.isMetadata(block.dropFirst()) else {
        isPlain = true
        mistaken = block[...]
        return (0, nil)
      }
      return (0, Array(block.dropFirst()))
    }
  }

  /// `Name='…';`, filled up with zeros.
  private static func isMetadata(_ bytes: ArraySlice<UInt8>) -> Bool {
    let text = bytes.prefix { $0 != 0 }
    guard let equals = text.firstIndex(of: UInt8(ascii: "=")), bytes[text.endIndex...].allSatisfy({ $0 == 0 })
    else { return text.isEmpty }
    return equals > text.startIndex
      && text[..<equals].allSatisfy { (UInt8(ascii: "A")...UInt8(ascii: "z")).contains($0) }
      && text[equals...].dropFirst().first == UInt8(ascii: "'")
  }
}

extension StreamMetadata {
  /// The `StreamTitle` of a block: "Artist - Title" is both, anything else the title. Nil where the block has none.
  package init?(icyBlock block: [UInt8]) {
    let text = block.withUnsafeBytes { bytes in
      TagText.decoded(
        UnsafeRawBufferPointer(rebasing: bytes[..<(bytes.firstIndex(of: 0) ?? bytes.count)]), isCut: false)
    }
    guard let start = text.range(of: "StreamTitle='") else { return nil }
    // A title may have quotation marks of its own, and the mark behind it too.
    let rest = text[start.upperBound...]
    guard let end = rest.range(of: "';Stream") ?? rest.range(of: "'", options: .backwards) else { return nil }
    self.init(streamTitle: Self.decodingReferences(String(rest[..<end.lowerBound])))
  }

  /// Icecast writes what a stream's character set has not as HTML does: `&#8211;`.
  private static func decodingReferences(_ text: String) -> String {
    var decoded = ""
    var rest = text[...]
    while let start = rest.range(of: "&#") {
      let digits = rest[start.upperBound...].prefix { $0.isASCII && $0.isNumber }
      guard let scalar = UInt32(digits).flatMap(Unicode.Scalar.init), rest[digits.endIndex...].first == ";"
      else {
        decoded += rest[..<start.upperBound]
        rest = rest[start.upperBound...]
        continue
      }
      decoded += rest[..<start.lowerBound]
      decoded.unicodeScalars.append(scalar)
      rest = rest[digits.endIndex...].dropFirst()
    }
    return decoded + rest
  }
}
