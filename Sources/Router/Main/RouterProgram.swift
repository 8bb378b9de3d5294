import ArgumentParser
import RouterCore
import ServiceSupport
import WireProtocol

@main
struct RouterProgram: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "Router",
    abstract: "Antiphon's Router: distributes the AudioEngine's audio to clients over WebSocket and HTTP.",
    usage: """
      Router [run] [settings]     which 'Router run --help' lists
      Router token <subcommand>
      """,
    version: WireLimits.softwareVersion, subcommands: [RouterCommand.self, TokenCommand.self],
    defaultSubcommand: RouterCommand.self)

  static func main() async { await ConfiguredCommand(Self.self, process: "router").run() }
}
