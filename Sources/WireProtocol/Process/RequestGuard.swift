/// Keeps a stranger's web page away from a server that has no password: its requests carry its own
/// `Origin`, and where it has pointed a name of its own at us (DNS rebinding) its own `Host`.
public struct RequestGuard: Sendable {
  /// What is looked at.
  public struct Subject: Sendable {
    /// `host` or `host:port` as sent.
    public var host: String?
    /// nil where there is none, which bots and players have not.
    public var origin: String?
    /// POST, DELETE and WebSockets; reading is kept from foreign pages by the browser.
    public var changesSomething: Bool

    public init(host: String?, origin: String?, changesSomething: Bool) {
      self.host = host
      self.origin = origin
      self.changesSomething = changesSomething
    }
  }

  private let bindHost: String
  private let allowedOrigins: Set<String>
  private let allowedHosts: Set<String>

  public init(bindHost: String, allowedOrigins: [String] = [], allowedHosts: [String] = []) {
    self.bindHost = Self.withoutBrackets(bindHost.lowercased())
    self.allowedOrigins = Set(allowedOrigins.map { Self.normal($0) })
    self.allowedHosts = Set(allowedHosts.map { $0.lowercased() })
  }

  public func check(_ subject: Subject) throws(ErrorReport) {
    if let host = subject.host, !isOurs(host.lowercased()) {
      throw ErrorReport(
        .forbidden, "the Host \(host.debugDescription) is not one of this server",
        hint: "start it with --allow-host \(Self.split(host.lowercased()).name)", stage: .command)
    }
    if subject.changesSomething, let origin = subject.origin, !allows(origin, host: subject.host) {
      throw ErrorReport(
        .forbidden, "a page of \(origin.debugDescription) may not command this server",
        hint: "start it with --allow-origin \(origin)", stage: .command)
    }
  }

  /// Whether a page of another address may read and command: it must be listed.
  public func isListed(origin: String) -> Bool {
    allowedOrigins.contains(Self.normal(origin))
  }

  private func allows(_ origin: String, host: String?) -> Bool {
    if isListed(origin: origin) { return true }
    guard let host, let separator = origin.firstRange(of: "://") else { return false }
    let port = origin[..<separator.lowerBound].lowercased() == "https" ? "443" : "80"
    let theirs = Self.split(origin[separator.upperBound...].lowercased())
    let ours = Self.split(host.lowercased())
    return theirs.name == ours.name && (theirs.port ?? port) == (ours.port ?? port)
  }

  private func isOurs(_ host: String) -> Bool {
    let name = Self.split(host).name
    // A name of a stranger's can be pointed at us, a bare address cannot.
    return Self.isLoopback(name) || Self.isAddress(name) || name == bindHost || allowedHosts.contains(name)
      || allowedHosts.contains(host)
  }

  public static func isLoopback(_ name: String) -> Bool {
    if name == "localhost" || name.hasSuffix(".localhost") || name == "::1" { return true }
    let parts = name.split(separator: ".", omittingEmptySubsequences: false)
    return parts.count == 4 && parts[0] == "127" && parts.allSatisfy { UInt8($0) != nil }
  }

  private static func isAddress(_ name: String) -> Bool {
    let parts = name.split(separator: ".", omittingEmptySubsequences: false)
    return name.contains(":") || parts.count == 4 && parts.allSatisfy { UInt8($0) != nil }
  }

  /// Splits `host:port` and `[v6]:port`.
  private static func split(_ authority: String) -> (name: String, port: String?) {
    if authority.hasPrefix("["), let end = authority.firstIndex(of: "]") {
      let rest = authority[authority.index(after: end)...]
      return (withoutBrackets(String(authority[...end])), rest.isEmpty ? nil : String(rest.dropFirst()))
    }
    guard let colon = authority.lastIndex(of: ":") else { return (authority, nil) }
    return (String(authority[..<colon]), String(authority[authority.index(after: colon)...]))
  }

  private static func withoutBrackets(_ host: String) -> String {
    host.hasPrefix("[") && host.hasSuffix("]") ? String(host.dropFirst().dropLast()) : host
  }

  private static func normal(_ origin: String) -> String {
    let lower = origin.lowercased()
    return lower.hasSuffix("/") ? String(lower.dropLast()) : lower
  }
}
