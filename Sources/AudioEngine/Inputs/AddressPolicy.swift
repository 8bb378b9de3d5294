// `SOCK_STREAM` is the module's that the compiler sees first with it, CLinux or Glibc.
import CLinux
import Glibc
import WireProtocol

/// Which addresses a stranger's URL may lead to: public ones, and networks that the operator allows.
///
/// Playing a URL is fetching a stranger's address from inside one's own network (docs/security.md).
package struct AddressPolicy: Sendable {
  /// Networks allowed by `--allow-network`.
  let allowed: [IPNetwork]
  /// Addresses of a host that are tried: a share of the time to connect for each.
  package static let maximumAddresses = 4
  private let lookUp: @Sendable (String) throws(ErrorReport) -> [IPAddress]

  /// - Parameter lookUp: a name's addresses, in the order they are to be tried; the system's resolver where not
  ///   given.
  package init(
    allowed: [IPNetwork],
    lookUp: @escaping @Sendable (String) throws(ErrorReport) -> [IPAddress] = AddressPolicy.addresses(of:)
  ) {
    self.allowed = allowed
    self.lookUp = lookUp
  }

  /// Special-purpose networks (RFC 6890 and its registries): nothing a stranger should reach from here.
  package static let refusedNetworks = [
    "0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16", "172.16.0.0/12",
    "192.0.0.0/24", "192.0.2.0/24", "192.88.99.0/24", "192.168.0.0/16", "198.18.0.0/15", "198.51.100.0/24",
    "203.0.113.0/24", "224.0.0.0/4", "240.0.0.0/4",
    "::/128", "::1/128", "64:ff9b:1::/48", "100::/64", "2001:2::/48", "2001:db8::/32", "fc00::/7",
    "fe80::/10", "fec0::/10", "ff00::/8",
  ]
  private static let refused = refusedNetworks.compactMap(IPNetwork.init)

  package func permits(_ address: IPAddress) -> Bool {
    if allowed.contains(where: { $0.contains(address) }) { return true }
    if Self.refused.contains(where: { $0.contains(address) }) { return false }
    return address.embedded.map(permits) ?? true
  }

  /// The addresses to connect to for a host, in the order they are to be tried: resolved once, checked, and then
  /// pinned by the caller, so that a second answer of the name server cannot change them. Families take turns (RFC
  /// 8305, section 4), so that where one is unreachable the other is tried soon.
  ///
  /// Blocks for as long as the system's resolver does.
  /// - Throws: `source_not_found` for a name without address, `source_forbidden` where no address may be
  ///   reached.
  package func resolve(host: String) throws(ErrorReport) -> [IPAddress] {
    let addresses = try lookUp(host)
    let permitted = addresses.filter(permits)
    if let first = permitted.first {
      let preferred = permitted.filter { $0.bytes.count == first.bytes.count }
      let others = permitted.filter { $0.bytes.count != first.bytes.count }
      let inTurn = (0..<permitted.count).flatMap {
        [preferred.dropFirst($0).first, others.dropFirst($0).first]
      }
      return Array(inTurn.compactMap { $0 }.prefix(Self.maximumAddresses))
    }
    throw Self.notPublic(host, addresses[0])
  }

  /// Checks a host that somebody else resolves. An address, in whatever form, and this machine's own names are known
  /// without asking; of other names the other is trusted.
  package func checkUnresolved(host: String) throws(ErrorReport) {
    let lowered = host.lowercased()
    let name = lowered.hasSuffix(".") ? String(lowered.dropLast()) : lowered
    guard name.utf8.allSatisfy({ $0 < 0x80 }) else {
      throw ErrorReport(.invalidSource, "\(host.quoted) has no plain host name", stage: .resolve)
    }
    let isLocal = name == "localhost" || name.hasSuffix(".localhost")
    let addresses = isLocal ? [IPAddress(bytes: [127, 0, 0, 1])] : Self.look(up: name, flags: AI_NUMERICHOST)
    if let first = addresses.first, !permits(first) { throw Self.notPublic(host, first) }
  }

  package static func addresses(of host: String) throws(ErrorReport) -> [IPAddress] {
    let addresses = look(up: host, flags: 0)
    guard !addresses.isEmpty else {
      throw ErrorReport(
        .sourceNotFound, "the name \(host) does not resolve", hint: "check the address", stage: .resolve)
    }
    return addresses
  }

  private static func notPublic(_ host: String, _ address: IPAddress) -> ErrorReport {
    ErrorReport(
      .sourceForbidden, "\(host) is the address \(address), which is not public",
      hint: "an operator can allow a network with --allow-network", stage: .resolve)
  }

  private static func look(up host: String, flags: Int32) -> [IPAddress] {
    var hints = addrinfo()
    hints.ai_flags = flags
    hints.ai_family = AF_UNSPEC
    hints.ai_socktype = Int32(SOCK_STREAM.rawValue)
    var list: UnsafeMutablePointer<addrinfo>?
    let status = getaddrinfo(host, nil, &hints, &list)
    defer { if let list { freeaddrinfo(list) } }
    var addresses: [IPAddress] = []
    // Safe: the list and what it points to belong to getaddrinfo until freeaddrinfo above.
    var item = status == 0 ? list : nil
    while let current = item?.pointee {
      switch current.ai_family {
      case AF_INET:
        current.ai_addr.withMemoryRebound(to: sockaddr_in.self, capacity: 1) {
          addresses.append(IPAddress(bytes: withUnsafeBytes(of: $0.pointee.sin_addr) { Array($0) }))
        }
      case AF_INET6:
        current.ai_addr.withMemoryRebound(to: sockaddr_in6.self, capacity: 1) {
          addresses.append(IPAddress(bytes: withUnsafeBytes(of: $0.pointee.sin6_addr) { Array($0) }))
        }
      default: break
      }
      item = current.ai_next
    }
    return addresses
  }
}
