import AsyncHTTPClient
import NIOPosix
import WireProtocol

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// An HTTP proxy that tunnels (RFC 9110, section 9.3.6), for pages and the streams behind them.
package struct WebProxy: Sendable {
  private static let usualPort = 80

  /// As given, with what it holds of secrets.
  let url: String
  let host: String
  let port: Int
  let user: String?
  let password: String?

  /// Reads `http://[user:password@]host[:port]`; nil for anything else.
  package init?(_ text: String) {
    guard let parsed = URL(string: text), parsed.scheme?.lowercased() == "http", let host = parsed.host(),
      !host.isEmpty, (1...65_535).contains(parsed.port ?? Self.usualPort),
      ["", "/"].contains(parsed.path()), parsed.query == nil, parsed.fragment == nil
    else { return nil }
    url = text
    self.host = host.hasPrefix("[") ? String(host.dropFirst().dropLast()) : host
    port = parsed.port ?? Self.usualPort
    user = parsed.user(percentEncoded: false)
    password = parsed.password(percentEncoded: false)
  }

  /// For the client.
  var configuration: HTTPClient.Configuration.Proxy {
    .server(
      host: host, port: port,
      authorization: user.map { .basic(username: $0, password: password ?? "") })
  }

  /// What went wrong with the proxy itself, without its name; nil for what has to do with the server.
  static func report(_ error: any Error) -> ErrorReport? {
    let words: String? =
      switch error {
      // It alone is connected to, and resolved.
      case is NIOConnectionError: "cannot be connected"
      case let error as HTTPClientError:
        switch error {
        case .connectTimeout, .httpProxyHandshakeTimeout: "did not answer in time"
        case .proxyAuthenticationRequired: "does not accept its user and password"
        case .invalidProxyResponse: "refuses the connection"
        default: nil
        }
      default: nil
      }
    return words.map {
      ErrorReport(
        .sourceUnreachable, "the proxy \($0)", hint: "an operator has to look at --yt-dlp-proxy",
        stage: .connect)
    }
  }
}
