import ServiceSupport

/// Whom something is accounted to: equal for all connections of one client. Who has a token is known by its subject,
/// who has none by the address.
package struct ClientID: Hashable, Sendable, CustomStringConvertible {
  /// `token:SUBJECT`, `address:ADDRESS`, or a name of the Router's own.
  package let description: String

  private init(_ description: String) {
    self.description = description
  }

  /// Reads an ID that was stored.
  package init(kept description: String) {
    self.init(description)
  }

  /// - Parameters:
  ///   - subject: the token's, where there is one.
  ///   - address: where the connection comes from: an IP address; nil where it is not known.
  package init(subject: String?, address: String?) {
    self.init(subject.map { "token:\($0)" } ?? "address:\(Self.network(address ?? "unknown"))")
  }

  /// What the Router does by itself: queues that advance, beds, music of signed deliveries.
  package static let router = ClientID("router")

  /// Whether it is known by an address of this machine, as one that comes through a proxy on it.
  var isLoopback: Bool {
    description.hasPrefix("address:127.") || description == "address:\(Self.network("::1"))"
  }

  /// For the engine, which shares fairly between clients and need not know who they are.
  var wireName: String { self == .router ? description : ContentHash.hexadecimal(description.utf8) }

  /// An IPv6 client has a whole /64 and may come from any address in it (RFC 6177).
  private static func network(_ address: String) -> String {
    // An IPv4 address as IPv6 writes it is one client's.
    if let mapped = address.lowercased().firstRange(of: "::ffff:"),
      address[mapped.upperBound...].contains(".")
    {
      return String(address[mapped.upperBound...])
    }
    guard address.contains(":"), let bytes = IPv6Prefix(address) else { return address }
    return bytes.description
  }
}
