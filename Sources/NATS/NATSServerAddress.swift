#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// Where a server is, and how it is addressed.
public struct NATSServerAddress: Sendable, Hashable {
  /// What a URL says in front of the host.
  public enum Login: Sendable, Hashable {
    case none
    case user(String, password: String)
    case token(String)
  }

  public var host: String
  public var port: Int
  public var login: Login
  /// `tls://`: nothing is said to this server before the connection is encrypted.
  public var requiresTLS: Bool
  /// The name in its certificate, where that is not the host.
  public var certificateName: String?

  public init(
    host: String, port: Int = 4222, login: Login = .none, requiresTLS: Bool = false,
    certificateName: String? = nil
  ) {
    self.host = host
    self.port = port
    self.login = login
    self.requiresTLS = requiresTLS
    self.certificateName = certificateName
  }

  /// Reads `nats://[user[:password]@]host[:port]`, or `tls://…`. A user without a password is a token.
  public init(url: String) throws(NATSError) {
    // Never repeats the URL: it may hold a password.
    guard let parts = URLComponents(string: url), let scheme = parts.scheme?.lowercased() else {
      throw .invalid("a NATS server is given as nats://host:4222")
    }
    guard scheme == "nats" || scheme == "tls" else {
      throw .invalid("a NATS server's URL begins with nats:// or tls://, not \(scheme)://")
    }
    guard let host = parts.host, !host.isEmpty else { throw .invalid("a NATS server's URL names no host") }
    guard parts.path.isEmpty || parts.path == "/", parts.query == nil, parts.fragment == nil else {
      throw .invalid("a NATS server's URL has nothing after the port")
    }
    let port = parts.port ?? 4222
    guard (1...65_535).contains(port) else { throw .invalid("invalid port: \(port)") }
    // An IPv6 address stands in brackets in the URL alone.
    self.host = host.hasPrefix("[") ? String(host.dropFirst().dropLast()) : host
    self.port = port
    requiresTLS = scheme == "tls"
    switch (parts.user, parts.password) {
    case (let user?, let password?): login = .user(user, password: password)
    case (let token?, nil) where !token.isEmpty: login = .token(token)
    default: login = .none
    }
  }

  /// Reads a list with commas between the servers.
  public static func list(_ text: String) throws(NATSError) -> [NATSServerAddress] {
    var servers: [NATSServerAddress] = []
    for url in text.split(separator: ",") {
      servers.append(try NATSServerAddress(url: url.trimmed))
    }
    guard !servers.isEmpty else { throw .invalid("no NATS server is given") }
    return servers
  }

  /// For people; without the login.
  public var description: String { host.contains(":") ? "[\(host)]:\(port)" : "\(host):\(port)" }
}
