import Logging
import NATS
import NIOCore
import NIOPosix

/// Clients that are closed after the test, and servers that are removed.
package final class NATSFixture: Sendable {
  private let clients = Told<NATSClient>()
  private let servers = Told<NATSServerProcess>()
  package init() {}

  package let log = Logger(label: "nats.tests") { _ in SwiftLogNoOpLogHandler() }

  package func server(
    _ configuration: String = "", jetStream: Bool = false, fromDebian: Bool = true
  ) throws -> NATSServerProcess {
    let server = try NATSServerProcess(configuration, jetStream: jetStream, fromDebian: fromDebian)
    servers.add(server)
    return server
  }

  /// Three nodes with JetStream.
  package func cluster() throws -> [NATSServerProcess] {
    let ports = try (0..<3).map { _ in try NATSServerProcess.freePort() }
    return try ports.indices.map { node in
      let server = try NATSServerProcess(
        jetStream: true, node: node, clusterPorts: ports, fromDebian: false)
      servers.add(server)
      return server
    }
  }

  /// A client; it need not be connected.
  package func start(
    _ urls: String, eventLoop: (any EventLoop)? = nil, _ change: (inout NATSConfiguration) -> Void = { _ in }
  ) throws -> NATSClient {
    var configuration = NATSConfiguration(servers: try NATSServerAddress.list(urls), name: "tests")
    change(&configuration)
    let client = try NATSClient(
      configuration, eventLoop: eventLoop ?? MultiThreadedEventLoopGroup.singleton.next(), logger: log)
    clients.add(client)
    client.start()
    return client
  }

  /// A client that is connected.
  package func connect(
    _ urls: String, eventLoop: (any EventLoop)? = nil, _ change: (inout NATSConfiguration) -> Void = { _ in }
  ) async throws -> NATSClient {
    let client = try start(urls, eventLoop: eventLoop, change)
    try await client.waitUntilConnected()
    return client
  }

  package func end() {
    for client in clients.values { client.close() }
    for server in servers.values { server.remove() }
  }
}

/// Gives a test its servers and clients, and ends them.
package func withNATS(_ body: (NATSFixture) async throws -> Void) async throws {
  let fixture = NATSFixture()
  defer { fixture.end() }
  try await body(fixture)
}

package func bytes(_ text: String) -> ByteBuffer { ByteBuffer(string: text) }

extension NATSClient {
  package func waitUntilConnected() async throws { try await waitUntilConnected(timeout: .seconds(10)) }

  /// All that was said before has come to the server.
  package func roundTrip() async throws {
    do throws(NATSError) {
      _ = try await request(ByteBuffer(), to: "nobody.is.here")
    } catch .noResponders {}
  }
}
