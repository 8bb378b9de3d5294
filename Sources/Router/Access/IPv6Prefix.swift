import Glibc

/// The first 64 bits of an IPv6 address: a network that one subscriber has.
struct IPv6Prefix: CustomStringConvertible {
  private let groups: [UInt16]

  /// - Parameter address: as text, with or without a zone; nil where it is none.
  init?(_ address: String) {
    var bytes = in6_addr()
    guard inet_pton(AF_INET6, String(address.prefix { $0 != "%" }), &bytes) == 1 else { return nil }
    groups = withUnsafeBytes(of: bytes) { raw in
      (0..<4).map { UInt16(raw[$0 * 2]) << 8 | UInt16(raw[$0 * 2 + 1]) }
    }
  }

  var description: String { groups.map { String($0, radix: 16) }.joined(separator: ":") + "::/64" }
}
