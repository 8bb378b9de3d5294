import NIOSSL

/// What a client is told at its start.
public struct NATSConfiguration: Sendable {
  public var servers: [NATSServerAddress]
  /// How the server's monitoring shows us.
  public var name: String
  /// A `.creds` file, or a file with a user's seed. Read anew before each connection, so that it may be replaced.
  public var credentialsFile: String?
  /// Certificates (PEM) of the authorities whose servers are trusted, instead of the system's. With it, nothing is said
  /// to a server before the connection is encrypted.
  public var certificateAuthorityFile: String?
  public var limits = NATSLimits()

  public init(servers: [NATSServerAddress], name: String) {
    self.servers = servers
    self.name = name
  }

  /// How connections are encrypted; nil on a machine that knows no authorities, as a small container. Blocks: it reads files.
  func makeTLSContext() throws(NATSError) -> NIOSSLContext? {
    var tls = TLSConfiguration.makeClientConfiguration()
    if let certificateAuthorityFile { tls.trustRoots = .file(certificateAuthorityFile) }
    do {
      return try NIOSSLContext(configuration: tls)
    } catch {
      guard let certificateAuthorityFile else { return nil }
      throw .invalid("the NATS certificates \(certificateAuthorityFile): \(error)")
    }
  }
}
