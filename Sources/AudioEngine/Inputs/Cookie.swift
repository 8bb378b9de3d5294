#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// What a site wants sent along with requests to it (RFC 6265).
package struct Cookie: Codable, Sendable, Equatable {
  package var name: String
  package var value: String
  /// In lower case, without a dot before it.
  package var domain: String
  /// Hosts below the domain get it too; else that host alone.
  package var includesSubdomains: Bool
  package var path: String
  /// For https alone.
  package var isSecure: Bool
  /// Unix time; nil of one that does not say.
  package var expires: Double?

  enum CodingKeys: String, CodingKey {
    case name, value, domain, path, expires
    case includesSubdomains = "subdomains"
    case isSecure = "secure"
  }

  package init(
    name: String, value: String, domain: String, includesSubdomains: Bool, path: String, isSecure: Bool,
    expires: Double?
  ) {
    self.name = name
    self.value = value
    self.domain = domain
    self.includesSubdomains = includesSubdomains
    self.path = path
    self.isSecure = isSecure
    self.expires = expires
  }

  /// What a request says of those cookies that belong to it, longer paths first (RFC 6265, section 5.4); an empty text
  /// where none does.
  package static func header(_ cookies: [Cookie], for url: String, unixSeconds now: Double) -> String {
    guard let url = URL(string: url) else { return "" }
    return cookies.filter { $0.belongs(to: url, unixSeconds: now) }
      .sorted { $0.path.utf8.count > $1.path.utf8.count }
      .map { "\($0.name)=\($0.value)" }.joined(separator: "; ")
  }

  private func belongs(to url: URL, unixSeconds now: Double) -> Bool {
    guard let host = url.host()?.lowercased(), expires ?? .infinity > now else { return false }
    return (!isSecure || url.scheme?.lowercased() == "https") && matches(host: host)
      && matches(path: url.path(percentEncoded: true))
  }

  /// RFC 6265, section 5.1.3: an address has no names below it.
  private func matches(host: String) -> Bool {
    host == domain || includesSubdomains && host.hasSuffix(".\(domain)") && IPAddress(host) == nil
  }

  /// RFC 6265, section 5.1.4.
  private func matches(path requested: String) -> Bool {
    let requested = requested.isEmpty ? "/" : requested
    guard requested.hasPrefix(path) else { return false }
    return path.hasSuffix("/") || requested.dropFirst(path.count).first.map { $0 == "/" } ?? true
  }
}
