#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// What is asked of a web server for one source: an address, and headers that every request for it carries.
package struct WebRequest: Sendable, Equatable {
  package struct Header: Sendable, Equatable {
    package var name: String
    package var value: String

    package init(name: String, value: String) {
      self.name = name
      self.value = value
    }
  }

  package private(set) var url: String
  /// At most `maximumHeaderCount`, and none that the engine sets itself.
  package private(set) var headers: [Header]
  /// Found with the address; each goes where it belongs, and nowhere else.
  package private(set) var cookies: [Cookie]
  /// Whether yt-dlp found it: it goes through the proxy, where there is one.
  package let isExtracted: Bool

  private static let maximumHeaderCount = 32
  private static let maximumHeaderByteCount = 8_192
  /// What describes the connection, the message or the part asked for is the engine's own to say
  /// (RFC 9110, sections 7.2, 7.6 and 14.2); names in lower case.
  private static let ownHeaders: Set<String> = [
    "accept-encoding", "connection", "content-length", "expect", "host", "if-match", "if-modified-since",
    "if-none-match", "if-range", "if-unmodified-since", "keep-alive", "proxy-authorization",
    "proxy-connection", "range", "te", "trailer", "transfer-encoding", "upgrade",
  ]
  /// What names a person to one server, and is another's business no more.
  private static let credentialHeaders: Set<String> = ["authorization", "cookie"]

  /// - Parameter headers: those that are malformed, too many, too long or the engine's own to set are left out.
  package init(
    url: String, headers: [Header] = [], cookies: [Cookie] = [], isExtracted: Bool = false
  ) {
    self.url = url
    self.headers = Array(headers.filter(Self.isFit).prefix(Self.maximumHeaderCount))
    self.cookies = cookies
    self.isExtracted = isExtracted
  }

  /// All that is sent along: the headers, and the cookies that belong to the address.
  package func sentHeaders(unixSeconds now: Double) -> [Header] {
    let cookie = Header(name: "Cookie", value: Cookie.header(cookies, for: url, unixSeconds: now))
    return cookie.value.isEmpty || !Self.isFit(cookie) ? headers : headers + [cookie]
  }

  /// The same request at the address a redirect or a playlist leads to: without credentials where that is another
  /// origin (RFC 6454). Cookies go on to other hosts of their domain, as RFC 6265 says, but to no other port, and not
  /// from https to http, as it would let them.
  package func redirected(to target: String) -> WebRequest {
    var request = self
    request.url = target
    let (old, new) = (Self.origin(of: url), Self.origin(of: target))
    if old != new {
      request.headers.removeAll { Self.credentialHeaders.contains($0.name.lowercased()) }
      if old?.scheme != new?.scheme || old?.port != new?.port { request.cookies = [] }
    }
    return request
  }

  private static func isFit(_ header: Header) -> Bool {
    !header.name.isEmpty && !ownHeaders.contains(header.name.lowercased())
      && header.name.utf8.count + header.value.utf8.count <= maximumHeaderByteCount
      && header.name.utf8.allSatisfy(isTokenByte)
      && header.value.utf8.allSatisfy { $0 >= 0x20 && $0 != 0x7F || $0 == 0x09 }
  }

  /// RFC 9110, section 5.6.2.
  private static func isTokenByte(_ byte: UInt8) -> Bool {
    switch byte {
    case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
      UInt8(ascii: "0")...UInt8(ascii: "9"):
      true
    default: "!#$%&'*+-.^_`|~".utf8.contains(byte)
    }
  }

  private struct Origin: Equatable {
    var scheme: String
    var host: String
    var port: Int
  }

  private static func origin(of url: String) -> Origin? {
    guard let parsed = URL(string: url), let scheme = parsed.scheme?.lowercased(), let host = parsed.host()
    else { return nil }
    return Origin(
      scheme: scheme, host: host.lowercased(), port: parsed.port ?? (scheme == "https" ? 443 : 80))
  }
}
