import ArgumentParser
import Glibc
import Logging
import RouterCore
import ServiceLifecycle
import WireProtocol

@main
struct RouterCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "Router",
    abstract: "Antiphon's Router: hears the AudioEngine and serves everyone who listens.")

  @OptionGroup var options: RouterConfiguration

  func run() async throws {
    OpenFileLimit.raise()
    let logger = Logger(label: "Router") { _ in StandardErrorLogHandler(level: options.logLevel) }
    var group = ServiceGroupConfiguration(
      services: [RouterApplication(configuration: options, logger: logger)],
      gracefulShutdownSignals: [.sigterm, .sigint],
      // Of interest only where the group itself is at fault.
      logger: Logger(label: "ServiceGroup") { _ in SwiftLogNoOpLogHandler() })
    group.maximumGracefulShutdownDuration = .seconds(4)
    do {
      try await ServiceGroup(configuration: group).run()
    } catch {
      logger.critical("\(error)")
      throw ExitCode.failure
    }
  }
}
