/// The name of one session: 1 to 24 characters of `A–Z a–z 0–9 . _ : -`.
///
/// Kept as its 24 padded wire bytes in three words, so that looking a packet's session up
/// hashes 24 bytes and allocates nothing.
public struct SessionID: Hashable, Sendable {
  private let words: (UInt64, UInt64, UInt64)

  private static let space = UInt8(ascii: " ")

  /// Checks a name where it enters the system.
  ///
  /// - Throws: `ErrorReport` `invalid_session_id`; a name is never cut or fixed.
  public init(_ name: String) throws(ErrorReport) {
    let bytes = name.utf8
    guard !bytes.isEmpty else { throw Self.invalid("the session ID is empty") }
    guard bytes.count <= WireLimits.sessionIDByteCount else {
      throw Self.invalid(
        "the session ID has \(bytes.count) bytes, at most \(WireLimits.sessionIDByteCount) are allowed")
    }
    if let stranger = name.unicodeScalars.first(where: { !Self.isAllowed($0) }) {
      throw Self.invalid("the session ID has the character \(stranger.debugDescription)")
    }
    self.init(unchecked: bytes)
  }

  /// Reads the padded form.
  ///
  /// - Parameter padded: exactly 24 bytes.
  /// - Returns: nil where the bytes are not an allowed name followed by spaces alone.
  public init?(padded: UnsafeRawBufferPointer) {
    guard padded.count == WireLimits.sessionIDByteCount, padded[0] != Self.space else { return nil }
    var isPadding = false
    for byte in padded {
      if byte == Self.space {
        isPadding = true
      } else {
        guard !isPadding, Self.isAllowed(Unicode.Scalar(byte)) else { return nil }
      }
    }
    words = (
      UInt64(bigEndian: padded.loadUnaligned(as: UInt64.self)),
      UInt64(bigEndian: padded.loadUnaligned(fromByteOffset: 8, as: UInt64.self)),
      UInt64(bigEndian: padded.loadUnaligned(fromByteOffset: 16, as: UInt64.self))
    )
  }

  private init(unchecked bytes: some Sequence<UInt8>) {
    var words: [3 of UInt64] = [0x2020_2020_2020_2020, 0x2020_2020_2020_2020, 0x2020_2020_2020_2020]
    for (index, byte) in bytes.enumerated() {
      let shift = UInt64(56 - 8 * (index % 8))
      words[index / 8] = words[index / 8] & ~(0xFF << shift) | UInt64(byte) << shift
    }
    self.words = (words[0], words[1], words[2])
  }

  /// Writes the 24 padded bytes at the start of `destination`.
  public func write(into destination: UnsafeMutableRawBufferPointer) {
    destination.storeBytes(of: words.0.bigEndian, toByteOffset: 0, as: UInt64.self)
    destination.storeBytes(of: words.1.bigEndian, toByteOffset: 8, as: UInt64.self)
    destination.storeBytes(of: words.2.bigEndian, toByteOffset: 16, as: UInt64.self)
  }

  public static func == (left: SessionID, right: SessionID) -> Bool {
    left.words == right.words
  }

  public func hash(into hasher: inout Hasher) {
    hasher.combine(words.0)
    hasher.combine(words.1)
    hasher.combine(words.2)
  }

  /// Whether a session ID may have that character.
  public static func isAllowed(_ scalar: Unicode.Scalar) -> Bool {
    switch scalar {
    case "A"..."Z", "a"..."z", "0"..."9", ".", "_", ":", "-": true
    default: false
    }
  }

  private static func invalid(_ message: String) -> ErrorReport {
    ErrorReport(
      .invalidSessionID, message, hint: "use 1 to 24 characters of A–Z a–z 0–9 . _ : -", stage: .command)
  }
}

extension SessionID: CustomStringConvertible {
  /// The name without its padding.
  public var description: String {
    var bytes: [UInt8] = []
    for word in [words.0, words.1, words.2] {
      for shift in stride(from: 56, through: 0, by: -8) {
        let byte = UInt8(truncatingIfNeeded: word >> UInt64(shift))
        if byte != Self.space { bytes.append(byte) }
      }
    }
    return String(decoding: bytes, as: UTF8.self)
  }
}

extension SessionID: Codable {
  public init(from decoder: any Decoder) throws {
    try self.init(decoder.singleValueContainer().decode(String.self))
  }

  public func encode(to encoder: any Encoder) throws {
    var container = encoder.singleValueContainer()
    try container.encode(description)
  }
}
