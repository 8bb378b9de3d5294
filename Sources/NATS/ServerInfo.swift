import NIOCore

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// A server's INFO, sent at first and when its cluster changes.
struct ServerInfo: Decodable {
  var name: String?
  var version: String?
  var maximumPayload: Int
  var headers: Bool?
  var requiresTLS: Bool?
  var offersTLS: Bool?
  /// To be signed by a client that has a key.
  var nonce: String?
  /// The cluster's servers, `host:port`.
  var clusterURLs: [String]?
  /// The server is about to stop, and asks its clients to leave (lame duck mode).
  var isLameDuck: Bool?

  private enum CodingKeys: String, CodingKey {
    case name = "server_name"
    case version, headers, nonce
    case maximumPayload = "max_payload"
    case requiresTLS = "tls_required"
    case offersTLS = "tls_available"
    case clusterURLs = "connect_urls"
    case isLameDuck = "ldm"
  }

  static func decode(_ json: ByteBuffer) throws(NATSProtocolError) -> ServerInfo {
    guard let info = try? JSONDecoder().decode(ServerInfo.self, from: Data(json.readableBytesView)) else {
      throw NATSProtocolError("the server's INFO cannot be read")
    }
    return info
  }
}

/// The client's CONNECT.
struct ConnectOptions: Encodable {
  var verbose = false
  var pedantic = false
  var headers = true
  var noResponders = true
  /// The server reports changes of its cluster.
  var `protocol` = 1
  var lang = "swift"
  var version = "1"
  var name: String
  var tlsRequired: Bool
  var user: String?
  var pass: String?
  var authToken: String?
  var jwt: String?
  var nkey: String?
  var sig: String?

  init(name: String, isEncrypted: Bool, login: NATSServerAddress.Login) {
    self.name = name
    tlsRequired = isEncrypted
    switch login {
    case .none: break
    case .user(let user, let password):
      self.user = user
      pass = password
    case .token(let token): authToken = token
    }
  }

  /// Signs the server's nonce, which proves the client's identity.
  mutating func sign(_ nonce: String?, with credentials: NATSCredentials) throws(NATSError) {
    guard let nonce else {
      throw .invalid("the server sent no nonce: it is not configured for NKey or JWT authentication")
    }
    jwt = credentials.token
    nkey = credentials.token == nil ? credentials.key.publicKey : nil
    sig = try credentials.key.signature(of: nonce)
  }

  func line() throws -> String {
    let encoder = JSONEncoder()
    encoder.keyEncodingStrategy = .convertToSnakeCase
    return "CONNECT \(String(decoding: try encoder.encode(self), as: UTF8.self))\r\n"
  }
}
