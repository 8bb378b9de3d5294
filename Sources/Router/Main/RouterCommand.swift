import ArgumentParser
import Logging
import RouterCore
import ServiceLifecycle
import ServiceSupport
import WireProtocol

struct RouterCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "run", abstract: "Run the Router (the default).")

  @OptionGroup var options: RouterConfiguration
  @OptionGroup var debug: DebugOptions
  @OptionGroup(title: "Configuration") var sources: ConfigurationOptions

  func run() async throws {
    OpenFileLimit.raise()
    let logger = ProcessLog.logger("Router", level: options.log.level, format: options.log.format)
    let service: any Service =
      if let session = debug.listenTo {
        try StandardOutputListener(sessionID: session, configuration: options, logger: logger)
      } else {
        RouterApplication(configuration: options, logger: logger)
      }
    var configuration = ServiceGroupConfiguration(
      services: [.init(service: service, successTerminationBehavior: .gracefullyShutdownGroup)],
      // Of interest only where the group itself is at fault.
      logger: Logger(label: "ServiceGroup") { _ in SwiftLogNoOpLogHandler() })
    configuration.maximumGracefulShutdownDuration = .seconds(StopSignals.graceSeconds)
    let group = ServiceGroup(configuration: configuration)
    StopSignals.atFirst(logger: logger) { await group.triggerGracefulShutdown() }
    do {
      try await group.run()
    } catch {
      logger.critical("\(error)")
      throw ExitCode.failure
    }
  }
}

/// Hearing a session without a browser.
struct DebugOptions: ParsableArguments {
  @Option(
    help: ArgumentHelp(
      "Debug mode: write this session's sound to standard output as Ogg Opus, and serve nobody: Router --listen-to ID | ffplay -",
      valueName: "session"),
    transform: { try SessionID($0) })
  var listenTo: SessionID?
}
