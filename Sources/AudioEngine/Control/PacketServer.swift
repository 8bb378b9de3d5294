import CLinux
import Glibc
import Logging
import ServiceSupport
import Synchronization
import WireProtocol

/// Serves routers: reads their commands, and has the pacer write to them (docs/wire-protocol.md).
package final class PacketServer: Sendable {
  private static let maximumConnections = 32

  private let group: gid_t?
  private let bufferByteCount: Int
  private let pacer: Pacer
  private let handler: CommandHandler
  private let requestErrors: RequestErrorLog
  private let logger: Logger
  private let connectionCount = Atomic<Int>(0)

  /// - Parameter group: whose processes may connect as well as the engine's own user's; nil for none.
  package init(
    group: gid_t?, bufferByteCount: Int, pacer: Pacer, handler: CommandHandler,
    requestErrors: RequestErrorLog, logger: Logger
  ) {
    self.group = group
    self.bufferByteCount = bufferByteCount
    self.pacer = pacer
    self.handler = handler
    self.requestErrors = requestErrors
    self.logger = logger
  }

  /// Serves a router, from whose connected socket its commands are read on a thread of their own. Takes the descriptor
  /// over.
  package func admit(_ accepted: Int32) {
    let connection = RouterConnection(descriptor: accepted, bufferByteCount: bufferByteCount)
    let user = antiphon_peer_user(accepted)
    let isInGroup = group.map { antiphon_peer_is_in_group(accepted, $0) } ?? false
    guard user == Int64(geteuid()) || isInGroup else {
      logger.warning("a peer of user \(user) was refused: this engine runs as \(geteuid())")
      return
    }
    guard connectionCount.add(1, ordering: .relaxed).newValue <= Self.maximumConnections else {
      connectionCount.subtract(1, ordering: .relaxed)
      return logger.warning("a router was refused: \(Self.maximumConnections) are connected already")
    }
    do {
      try EngineThread.start(name: "router-reader") { [self] in
        defer { connectionCount.subtract(1, ordering: .relaxed) }
        // Commands are few and soon done, and people wait for what they do.
        if !ThreadPriority.goAhead() {
          logger.debug("commands are read with an ordinary thread's priority: LimitNICE would allow more")
        }
        logger.info("a router connected")
        pacer.post(.connected(connection))
        connection.readLines { line in receive(line, on: connection) }
        pacer.post(.disconnected(connection.id))
        logger.info("a router disconnected")
      }
    } catch {
      connectionCount.subtract(1, ordering: .relaxed)
      logger.error("a router was refused: \(error)")
    }
  }

  private func receive(_ line: LineDecoder.Line, on connection: RouterConnection) {
    handler.waitForRoom()
    connection.waitUntilRead()
    switch line {
    case .whole(let bytes):
      do {
        let command = try EngineCommand.decode(bytes)
        handler.perform(
          command.action,
          for: PendingRequest(
            .router(connection.id), requestID: command.requestID, client: command.client, epoch: command.epoch
          ))
      } catch {
        refuse(error, on: connection)
      }
    case .tooLong:
      refuse(
        CommandError(
          report: ErrorReport(
            .lineTooLong, "a command is longer than \(WireLimits.maximumCommandByteCount) bytes",
            hint: "send it in less", stage: .command)), on: connection)
    }
  }

  private func refuse(_ error: CommandError, on connection: RouterConnection) {
    requestErrors.note(error.report, sessionID: error.sessionID)
    pacer.post(
      .answer(
        EngineEvent(.error(error.report), sessionID: error.sessionID),
        PendingRequest(.router(connection.id), requestID: error.requestID)))
  }
}
