import ArgumentParser

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// Runs a command whose settings may also stand in the environment and in a file. They are declared once, as
/// options and flags: what is found elsewhere is put on the command line before ArgumentParser reads it, so
/// that checks and words are the same wherever a value comes from (docs/decisions/0014-configuration.md).
public struct ConfiguredCommand<Root: AsyncParsableCommand> {
  /// Asks for something else than to run.
  private static var informative: Set<String> {
    ["-h", "--help", "-help", "--version", "--experimental-dump-help", "--generate-completion-script"]
  }

  private let process: String
  private let arguments: [String]
  private let environment: [String: String]

  /// - Parameter process: `router` for variables that begin with `ANTIPHON_ROUTER_`.
  public init(
    _: Root.Type, process: String, arguments: [String] = Array(CommandLine.arguments.dropFirst()),
    environment: [String: String] = ProcessInfo.processInfo.environment
  ) {
    self.process = process
    self.arguments = arguments
    self.environment = environment
  }

  /// Runs it, and ends the process with what came of it.
  public func run() async {
    do {
      guard let target = try findTarget(), !arguments.contains(where: Self.informative.contains) else {
        return await Root.main(arguments)
      }
      let rest = Array(arguments.dropFirst(target.path.count))
      let inForce = SettingsInForce(
        target.settings, process: process, arguments: rest, environment: environment)
      let line = Line(path: target.path, rest: rest, entries: inForce.entries)
      var problems = inForce.problems
      if problems.isEmpty { problems += line.problem.map { [$0] } ?? [] }
      if rest.contains("--print-config") { print(inForce.table, terminator: "") }
      guard problems.isEmpty else { refuse(problems) }
      guard !rest.contains("--print-config") else { return }
      if target.isMain { warn(inForce) }
      await Root.main(line.arguments)
    } catch {
      Root.exit(withError: error)
    }
  }

  // MARK: Which command

  private struct Target {
    /// The subcommands' names on the command line.
    var path: [String]
    var settings: [Setting]
    /// Whether it is the process itself and no tool beside it.
    var isMain: Bool
  }

  /// What the command line asks for; nil where it has no settings.
  private func findTarget() throws -> Target? {
    let root = try CommandDescription(of: Root.self)
    let defaultName = Root.configuration.defaultSubcommand?._commandName
    let main = defaultName.flatMap(root.subcommand) ?? root
    var path: [String] = []
    var command = root
    for argument in arguments {
      guard let next = command.subcommand(argument) else { break }
      path.append(argument)
      command = next
    }
    if path.isEmpty || path == [main.commandName] {
      return Target(path: path, settings: main.settings, isMain: true)
    }
    // A tool is told by the process's settings what it needs of them.
    let names = Set(command.settings.map(\.name))
    let shared = main.settings.filter { names.contains($0.name) }
    return shared.isEmpty ? nil : Target(path: path, settings: shared, isMain: false)
  }

  // MARK: Saying what is wrong

  /// A whole command line, and what ArgumentParser thinks of it.
  private struct Line {
    var path: [String]
    var rest: [String]
    var entries: [SettingsInForce.Entry]

    var arguments: [String] { path + entries.flatMap(\.arguments) + rest }

    /// Why it cannot be run, with the names of the values elsewhere that it comes from.
    var problem: String? {
      guard let words = words(of: arguments) else { return nil }
      let blamed = entries.filter { entry in
        guard !entry.arguments.isEmpty else { return false }
        var without = self
        without.entries.removeAll { $0 == entry }
        return self.words(of: without.arguments) != words
      }
      let places = blamed.map { "--\($0.setting.name) comes from \($0.source)" }
      return ([words] + places).joined(separator: "\n  ")
    }

    private func words(of arguments: [String]) -> String? {
      do {
        _ = try Root.parseAsRoot(arguments)
        return nil
      } catch {
        return Root.message(for: error)
      }
    }
  }

  private func refuse(_ problems: [String]) -> Never {
    Root.exit(withError: ValidationError(problems.joined(separator: "\n")))
  }

  private func warn(_ inForce: SettingsInForce) {
    let format = inForce.value(of: "log-format").flatMap(LogFormat.init) ?? .text
    let logger = ProcessLog.logger(Root._commandName, level: .warning, format: format)
    for variable in inForce.unknownVariables {
      logger.warning("ignoring the unknown environment variable \(variable)")
    }
  }
}
