import ArgumentParser

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// One thing an operator can set: an option or flag of a command, known by its long name.
public struct Setting: Sendable, Equatable {
  public enum Kind: Sendable, Equatable {
    /// Present or not; where it is invertible there is a `--no-…` too.
    case flag(isInvertible: Bool)
    case single
    /// May be given several times.
    case repeated
  }

  /// As on the command line, without the dashes: `engine-socket`.
  public let name: String
  public let kind: Kind
  /// In words; nil where there is none.
  public let defaultValue: String?

  public init(name: String, kind: Kind, defaultValue: String? = nil) {
    self.name = name
    self.kind = kind
    self.defaultValue = defaultValue
  }

  /// Never shown. A setting that names a file with a secret in it is none; an address of a proxy or of NATS may hold a
  /// password, and arguments for a site its tokens.
  public var isSecret: Bool {
    ["secret", "token", "password", "key", "proxy", "args", "nats"].contains {
      name == $0 || name.hasSuffix("-\($0)")
    }
  }

  /// Its variable in the environment: `ANTIPHON_ROUTER_ENGINE_SOCKET` of the process `router`.
  package func variable(of process: String) -> String {
    "ANTIPHON_\(process)_\(name)".uppercased().replacing("-", with: "_")
  }

  /// What gives this value on the command line.
  func arguments(for values: [String]) -> [String] {
    switch kind {
    case .single, .repeated: return values.map { "--\(name)=\($0)" }
    case .flag(let isInvertible):
      if values == ["true"] { return ["--\(name)"] }
      return isInvertible ? ["--no-\(name)"] : []
    }
  }
}

/// A command as ArgumentParser describes it for other programs (`--experimental-dump-help`): the one list of
/// settings, from which the environment's and the file's names follow.
package struct CommandDescription: Decodable {
  private struct Dump: Decodable {
    var command: CommandDescription
  }

  private struct Argument: Decodable {
    struct Name: Decodable {
      var kind: String
      var name: String
    }

    var kind: String
    var names: [Name]?
    var isRepeating: Bool
    var defaultValue: String?

    var longName: String? { names?.first { $0.kind == "long" }?.name }
  }

  /// Options of every command, and those that say where settings are.
  private static let noSettings: Set<String> = ["help", "version", "config", "print-config"]

  let commandName: String
  private let arguments: [Argument]?
  private let subcommands: [CommandDescription]?

  package init(of command: any ParsableCommand.Type) throws {
    self = try JSONDecoder().decode(Dump.self, from: Data(command._dumpHelp().utf8)).command
  }

  package func subcommand(_ name: String) -> CommandDescription? {
    subcommands?.first { $0.commandName == name }
  }

  package var settings: [Setting] {
    let named = (arguments ?? []).compactMap { argument in argument.longName.map { ($0, argument) } }
    let flags = Set(named.filter { $0.1.kind == "flag" }.map(\.0))
    return named.compactMap { name, argument in
      guard !Self.noSettings.contains(name) else { return nil }
      guard argument.kind == "flag" else {
        return Setting(
          name: name, kind: argument.isRepeating ? .repeated : .single, defaultValue: argument.defaultValue)
      }
      if name.hasPrefix("no-"), flags.contains(String(name.dropFirst(3))) { return nil }
      return Setting(
        name: name, kind: .flag(isInvertible: flags.contains("no-\(name)")),
        defaultValue: argument.defaultValue == "--\(name)" ? "true" : "false")
    }
  }
}
