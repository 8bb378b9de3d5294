import ArgumentParser
import NATS

/// The NATS servers that connect Routers and engines.
package struct NATSOptions: ParsableArguments, Sendable {
  @Option(
    help: ArgumentHelp(
      "NATS servers that connect Routers and engines, instead of a Unix socket: nats://HOST:4222 or tls://HOST:4222, comma-separated.",
      valueName: "servers"))
  package var nats: String?

  @Option(
    help: ArgumentHelp(
      "A .creds file, or a file with a user's NKey seed, for authentication at the NATS servers. Read again for each connection.",
      valueName: "file"))
  package var natsCredentialsFile: String?

  @Option(
    help: ArgumentHelp(
      "A PEM file of CA certificates to trust for the NATS servers, instead of the system's.",
      valueName: "file"))
  package var natsCaFile: String?

  package init() {}

  package func validate() throws {
    guard let nats else {
      guard natsCredentialsFile == nil, natsCaFile == nil else {
        throw ValidationError("--nats-credentials-file and --nats-ca-file require --nats")
      }
      return
    }
    do throws(NATSError) {
      _ = try NATSServerAddress.list(nats)
    } catch {
      throw ValidationError("--nats: \(error)")
    }
  }

  /// - Parameter name: how the servers' monitoring shows the process.
  /// - Returns: nil where there is no NATS.
  package func configuration(name: String) throws(NATSError) -> NATSConfiguration? {
    guard let nats else { return nil }
    var configuration = NATSConfiguration(servers: try NATSServerAddress.list(nats), name: name)
    configuration.credentialsFile = natsCredentialsFile
    configuration.certificateAuthorityFile = natsCaFile
    return configuration
  }
}
