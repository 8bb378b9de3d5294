import Glibc

/// An IPv4 or IPv6 address as bytes in network order.
package struct IPAddress: Hashable, Sendable, CustomStringConvertible {
  /// 4 or 16 bytes.
  let bytes: [UInt8]

  package init(bytes: [UInt8]) { self.bytes = bytes }

  /// Reads a numeric address in its usual form.
  package init?(_ text: String) {
    var v4 = in_addr()
    if inet_pton(AF_INET, text, &v4) == 1 {
      bytes = withUnsafeBytes(of: v4) { Array($0) }
      return
    }
    var v6 = in6_addr()
    guard inet_pton(AF_INET6, text, &v6) == 1 else { return nil }
    bytes = withUnsafeBytes(of: v6) { Array($0) }
  }

  package var description: String {
    var text = [CChar](repeating: 0, count: Int(INET6_ADDRSTRLEN))
    let family = bytes.count == 4 ? AF_INET : AF_INET6
    _ = bytes.withUnsafeBytes { inet_ntop(family, $0.baseAddress, &text, socklen_t(text.count)) }
    return String(decoding: text.prefix { $0 != 0 }.map(UInt8.init(bitPattern:)), as: UTF8.self)
  }

  /// The IPv4 address that an IPv6 one carries inside itself, by which its packets would travel:
  /// mapped (RFC 4291), NAT64 (RFC 6052), 6to4 (RFC 3056), Teredo (RFC 4380, inverted), IPv4-compatible.
  var embedded: IPAddress? {
    guard bytes.count == 16 else { return nil }
    if bytes.starts(with: Self.zeros(10) + [0xFF, 0xFF]) || bytes.starts(with: Self.zeros(12)) {
      return IPAddress(bytes: Array(bytes[12...]))
    }
    if bytes.starts(with: [0x00, 0x64, 0xFF, 0x9B]) { return IPAddress(bytes: Array(bytes[12...])) }
    if bytes.starts(with: [0x20, 0x02]) { return IPAddress(bytes: Array(bytes[2..<6])) }
    if bytes.starts(with: [0x20, 0x01, 0x00, 0x00]) {
      return IPAddress(bytes: bytes[12...].map { ~$0 })
    }
    return nil
  }

  private static func zeros(_ count: Int) -> [UInt8] { [UInt8](repeating: 0, count: count) }
}

/// A network in CIDR form: `192.168.0.0/16`, `fd00::/8`; a bare address is a network of one.
package struct IPNetwork: Hashable, Sendable, CustomStringConvertible {
  let address: IPAddress
  let prefixLength: Int

  /// - Returns: nil where the text is no network.
  package init?(_ text: String) {
    let parts = text.split(separator: "/", maxSplits: 1, omittingEmptySubsequences: false)
    guard let address = IPAddress(String(parts[0])) else { return nil }
    let width = address.bytes.count * 8
    guard let length = parts.count == 2 ? Int(parts[1]) : width, (0...width).contains(length) else {
      return nil
    }
    self.address = address
    prefixLength = length
  }

  package var description: String { "\(address)/\(prefixLength)" }

  package func contains(_ candidate: IPAddress) -> Bool {
    guard candidate.bytes.count == address.bytes.count else { return false }
    return (0..<prefixLength).allSatisfy { bit in
      let mask = UInt8(0x80) >> UInt8(bit % 8)
      return candidate.bytes[bit / 8] & mask == address.bytes[bit / 8] & mask
    }
  }
}
