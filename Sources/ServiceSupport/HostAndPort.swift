import Glibc

/// A `Host` header's value (RFC 9110, section 7.2): a name, an IPv4 address or a bracketed IPv6 one, and perhaps a
/// port.
public struct HostAndPort: Sendable, Equatable {
  /// In lower case, without brackets.
  public let host: String
  public let port: UInt16?
  public let isAddress: Bool

  /// A name of the DNS (RFC 1035, section 3.1).
  private static let maximumNameByteCount = 253

  /// - Returns: nil for anything else: a user, a path, a port that is none, an address that is none.
  public init?(_ text: String) {
    let bytes = text.lowercased()
    let rest: Substring
    if bytes.hasPrefix("[") {
      guard let end = bytes.firstIndex(of: "]") else { return nil }
      host = String(bytes[bytes.index(after: bytes.startIndex)..<end])
      rest = bytes[bytes.index(after: end)...]
      guard Self.isIPv6(host) else { return nil }
      isAddress = true
    } else {
      let end = bytes.firstIndex(of: ":") ?? bytes.endIndex
      host = String(bytes[..<end])
      rest = bytes[end...]
      isAddress = Self.isIPv4(host)
      guard isAddress || Self.isName(host) else { return nil }
    }
    // The port may be empty (RFC 3986, section 3.2.3).
    guard rest.isEmpty || rest.hasPrefix(":") else { return nil }
    let digits = rest.dropFirst()
    guard digits.utf8.allSatisfy({ (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) }) else { return nil }
    port = UInt16(digits)
    if !digits.isEmpty, port == nil { return nil }
  }

  private static func isName(_ host: String) -> Bool {
    !host.isEmpty && host.utf8.count <= maximumNameByteCount
      && host.utf8.allSatisfy { byte in
        switch byte {
        case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"),
          UInt8(ascii: "."), UInt8(ascii: "_"):
          true
        default: false
        }
      }
  }

  private static func isIPv4(_ host: String) -> Bool {
    var address = in_addr()
    return inet_pton(AF_INET, host, &address) == 1
  }

  private static func isIPv6(_ host: String) -> Bool {
    var address = in6_addr()
    return inet_pton(AF_INET6, host, &address) == 1
  }
}
