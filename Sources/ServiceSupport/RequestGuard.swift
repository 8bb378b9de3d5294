import WireProtocol

/// Keeps a stranger's web page away from a server that has no password: its requests carry its own
/// `Origin`, and where it has pointed a name of its own at us (DNS rebinding) its own `Host`.
public struct RequestGuard: Sendable {
  /// What is looked at.
  public struct Subject: Sendable {
    /// `host` or `host:port` as sent.
    public var host: String?
    /// nil where there is none, which bots and players have not.
    public var origin: String?
    /// `Sec-Fetch-Site`: what a browser says of who made it ask; nil where there is none.
    public var fetchSite: String?
    /// The page that made a browser ask, where it says so.
    public var referer: String?
    /// What the request does.
    public var effect: Effect

    public init(
      host: String?, origin: String?, fetchSite: String? = nil, referer: String? = nil, effect: Effect
    ) {
      self.host = host
      self.origin = origin
      self.fetchSite = fetchSite
      self.referer = referer
      self.effect = effect
    }
  }

  /// What a request does to us, by which a foreign page may make it or not.
  public enum Effect: Sendable {
    /// Nothing: a browser keeps the answer from a foreign page.
    case none
    /// It is answered at a cost, as a GET that opens a source, is: a foreign page needs no answer for that.
    case work
    /// POST, DELETE and WebSockets.
    case change
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
    if let text = subject.host {
      guard let host = HostAndPort(text) else {
        throw ErrorReport(
          .forbidden, "the Host \(text.quoted) is no host with or without a port",
          stage: .command)
      }
      guard isOurs(host) else {
        throw ErrorReport(
          .forbidden, "the Host \(text.quoted) is not one of this server",
          hint: "start it with --allow-host \(host.host)", stage: .command)
      }
    }
    if subject.effect == .change, let origin = subject.origin, !allows(origin, host: subject.host) {
      throw ErrorReport(
        .forbidden, "a page of \(origin.quoted) may not command this server",
        hint: "start it with --allow-origin \(origin.shortened)", stage: .command)
    }
    if subject.effect != .none, subject.fetchSite?.lowercased() == "cross-site", !isListed(subject) {
      throw ErrorReport(
        .forbidden, "cross-site requests are not allowed",
        hint: "open the address itself, or start the server with --allow-origin and the page's origin",
        stage: .command)
    }
  }

  /// Whether the page that made a browser ask is a listed one: an element such as `<audio>` names it in `Referer`
  /// alone, which no page can make another's.
  private func isListed(_ subject: Subject) -> Bool {
    if let origin = subject.origin { return isListed(origin: origin) }
    guard let referer = subject.referer, let scheme = referer.firstRange(of: "://") else { return false }
    let host = referer[scheme.upperBound...].prefix { !"/?#".contains($0) }
    return isListed(origin: String(referer[..<scheme.upperBound]) + host)
  }

  /// Whether a page of another address may read and command: it must be listed.
  public func isListed(origin: String) -> Bool {
    allowedOrigins.contains(Self.normal(origin))
  }

  private func allows(_ origin: String, host: String?) -> Bool {
    if isListed(origin: origin) { return true }
    guard let host, let ours = HostAndPort(host), let separator = origin.firstRange(of: "://"),
      let theirs = HostAndPort(String(origin[separator.upperBound...]))
    else { return false }
    let port: UInt16 = origin[..<separator.lowerBound].lowercased() == "https" ? 443 : 80
    return theirs.host == ours.host && (theirs.port ?? port) == (ours.port ?? port)
  }

  private func isOurs(_ host: HostAndPort) -> Bool {
    // A name of a stranger's can be pointed at us, a bare address cannot.
    host.isAddress || Self.isLoopback(host.host) || host.host == bindHost || allowedHosts.contains(host.host)
      || host.port.map { allowedHosts.contains("\(host.host):\($0)") } ?? false
  }

  public static func isLoopback(_ name: String) -> Bool {
    if name == "localhost" || name.hasSuffix(".localhost") || name == "::1" { return true }
    let parts = name.split(separator: ".", omittingEmptySubsequences: false)
    return parts.count == 4 && parts[0] == "127" && parts.allSatisfy { UInt8($0) != nil }
  }

  private static func withoutBrackets(_ host: String) -> String {
    host.hasPrefix("[") && host.hasSuffix("]") ? String(host.dropFirst().dropLast()) : host
  }

  private static func normal(_ origin: String) -> String {
    let lower = origin.lowercased()
    return lower.hasSuffix("/") ? String(lower.dropLast()) : lower
  }
}
