import Crypto

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// An ed25519 key as NATS writes it: base32 of a type, 32 bytes and a CRC-16, which makes users begin with U, accounts
/// with A, operators with O, and seeds with S and the type.
package struct NKey: Sendable {
  package enum Kind: UInt8, Sendable {
    case account = 0
    case `operator` = 112
    case user = 160
  }

  private static let seedPrefix: UInt8 = 144

  package let kind: Kind
  private let key: Curve25519.Signing.PrivateKey

  /// A new key.
  package init(_ kind: Kind) {
    self.kind = kind
    key = Curve25519.Signing.PrivateKey()
  }

  /// Reads a seed.
  package init(seed: String) throws(NATSError) {
    guard let bytes = Base32.decode(seed), bytes.count == 36,
      CRC16.checksum(bytes.dropLast(2)) == UInt16(bytes[34]) | UInt16(bytes[35]) << 8
    else { throw .invalid("invalid or damaged NATS seed") }
    // Five bits of the first byte say that it is a seed; the type has the three after them and five of the second byte.
    guard bytes[0] & 0xF8 == Self.seedPrefix,
      let kind = Kind(rawValue: (bytes[0] & 7) << 5 | (bytes[1] & 0xF8) >> 3),
      let key = try? Curve25519.Signing.PrivateKey(rawRepresentation: bytes[2..<34])
    else { throw .invalid("unsupported NATS seed type: expected user, account or operator") }
    self.kind = kind
    self.key = key
  }

  /// As it stands in configurations and tokens: public.
  package var publicKey: String {
    Self.encode([kind.rawValue] + key.publicKey.rawRepresentation)
  }

  /// Secret.
  package var seed: String {
    Self.encode([Self.seedPrefix | kind.rawValue >> 5, kind.rawValue << 3 & 0xF8] + key.rawRepresentation)
  }

  /// The signature, as CONNECT and tokens have it: base64url without padding.
  package func signature(of text: String) throws(NATSError) -> String {
    guard let signature = try? key.signature(for: Data(text.utf8)) else {
      throw .invalid("the NATS seed does not sign")
    }
    return signature.base64EncodedString()
      .replacing("+", with: "-").replacing("/", with: "_").replacing("=", with: "")
  }

  private static func encode(_ bytes: [UInt8]) -> String {
    let checksum = CRC16.checksum(bytes[...])
    return Base32.encode(bytes + [UInt8(truncatingIfNeeded: checksum), UInt8(checksum >> 8)])
  }
}

/// RFC 4648's base32 without padding.
enum Base32 {
  private static let alphabet = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZ234567".utf8)

  static func encode(_ bytes: [UInt8]) -> String {
    var text: [UInt8] = []
    var bits: UInt32 = 0
    var bitCount = 0
    for byte in bytes {
      bits = bits << 8 | UInt32(byte)
      bitCount += 8
      while bitCount >= 5 {
        bitCount -= 5
        text.append(alphabet[Int(bits >> UInt32(bitCount)) & 31])
      }
    }
    if bitCount > 0 { text.append(alphabet[Int(bits << UInt32(5 - bitCount)) & 31]) }
    return String(decoding: text, as: UTF8.self)
  }

  /// - Returns: nil where a character is not of the alphabet.
  static func decode(_ text: String) -> [UInt8]? {
    var bytes: [UInt8] = []
    var bits: UInt32 = 0
    var bitCount = 0
    for character in text.utf8 {
      guard let value = alphabet.firstIndex(of: character) else { return nil }
      bits = bits << 5 | UInt32(value)
      bitCount += 5
      if bitCount >= 8 {
        bitCount -= 8
        bytes.append(UInt8(truncatingIfNeeded: bits >> UInt32(bitCount)))
      }
    }
    return bytes
  }
}

/// CRC-16/XMODEM, which NATS puts behind its keys.
enum CRC16 {
  static func checksum(_ bytes: ArraySlice<UInt8>) -> UInt16 {
    var checksum: UInt16 = 0
    for byte in bytes {
      checksum ^= UInt16(byte) << 8
      for _ in 0..<8 { checksum = checksum & 0x8000 == 0 ? checksum << 1 : checksum << 1 ^ 0x1021 }
    }
    return checksum
  }
}
