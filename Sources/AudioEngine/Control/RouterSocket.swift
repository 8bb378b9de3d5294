import Glibc
import Logging
import WireProtocol

/// The Unix socket that routers connect to.
package final class RouterSocket: Sendable {
  private let path: String
  private let acceptor: ConnectionAcceptor
  private let server: PacketServer

  /// Makes the socket, mode 0600, in a folder made if need be.
  ///
  /// - Parameter group: whose processes may connect as well, the mode being 0660; nil for none.
  /// - Throws: `internal`, naming the path and what to do, where another engine has it or it cannot be made.
  package init(path: String, group: gid_t?, server: PacketServer, logger: Logger) throws(ErrorReport) {
    self.path = path
    self.server = server
    acceptor = ConnectionAcceptor(
      descriptor: try ListeningSocket.make(path: path, group: group), logger: logger)
  }

  /// Accepts routers on a thread of its own until `stop`.
  package func start() throws(ErrorReport) {
    try EngineThread.start(name: "accept") { [self] in
      acceptor.run { server.admit($0) }
    }
  }

  /// Takes no more routers and removes the socket's name.
  package func stop() {
    unlink(path)
    acceptor.stop()
  }
}
