import Configuration
import Synchronization

/// Every setting with its value and where it came from: the command line before the environment before the file
/// before the default.
public struct SettingsInForce: Sendable {
  public enum Source: Sendable, Equatable, CustomStringConvertible {
    case commandLine
    case environment(variable: String)
    case file(path: String, key: String)
    case byDefault

    public var description: String {
      switch self {
      case .commandLine: "the command line"
      case .environment(let variable): "\(variable) in the environment"
      case .file(let path, let key): "\(key.debugDescription) in \(path)"
      case .byDefault: "the default"
      }
    }
  }

  public struct Entry: Sendable, Equatable {
    public let setting: Setting
    /// One for a single setting; "true" or "false" for a flag; none where there is no default.
    public let values: [String]
    public let source: Source

    /// What has to be put on the command line for ArgumentParser to see it.
    var arguments: [String] {
      switch source {
      case .commandLine, .byDefault: []
      case .environment, .file: setting.arguments(for: values)
      }
    }
  }

  public private(set) var entries: [Entry] = []
  /// What is wrong, each in one sentence: the process cannot start.
  public private(set) var problems: [String] = []
  /// Variables with the process's prefix that set nothing.
  public private(set) var unknownVariables: [String] = []

  /// - Parameter process: `router` for variables that begin with `ANTIPHON_ROUTER_`.
  public init(
    _ settings: [Setting], process: String, arguments: [String], environment: [String: String]
  ) {
    let line = CommandLineValues(arguments, settings: settings)
    let prefix = "ANTIPHON_\(process.uppercased())_"
    // An empty variable sets nothing, so that compose files can pass on what may not be there.
    let variables = environment.filter { $0.key.hasPrefix(prefix) && !$0.value.isEmpty }
    let file = readFile(line.configPath ?? variables["\(prefix)CONFIG"], settings)
    let reader = SettingsReader(
      commandLine: Self.contents(of: line, settings), variables: variables, process: process, file: file)
    for setting in settings {
      do {
        entries.append(try reader.read(setting))
      } catch {
        problems.append(error.description)
      }
    }
    let known = Set(settings.map { $0.variable(of: process) } + ["\(prefix)CONFIG"])
    unknownVariables = variables.keys.filter { !known.contains($0) }.sorted()
  }

  /// What the environment and the file give, as arguments.
  public var arguments: [String] { entries.flatMap(\.arguments) }

  private mutating func readFile(_ path: String?, _ settings: [Setting]) -> ConfigurationFile? {
    guard let path else { return nil }
    do {
      let file = try ConfigurationFile(path: path, settings: settings)
      problems += file.problems
      return file
    } catch {
      problems.append(error.description)
      return nil
    }
  }

  private static func contents(of line: CommandLineValues, _ settings: [Setting]) -> [String: ConfigContent] {
    var contents: [String: ConfigContent] = [:]
    for setting in settings {
      guard let values = line.values[setting.name] else { continue }
      switch setting.kind {
      case .flag: contents[setting.name] = .bool(values == ["true"])
      case .single: contents[setting.name] = .string(values.first ?? "")
      case .repeated: contents[setting.name] = .stringArray(values)
      }
    }
    return contents
  }
}

/// Asks swift-configuration's providers in their order, and notes which of them answered.
private struct SettingsReader {
  struct ValueError: Error, CustomStringConvertible {
    let description: String
  }

  /// The provider that answered last, and what it said.
  private final class Answers: AccessReporter {
    private let last = Mutex<AccessEvent?>(nil)

    func report(_ event: AccessEvent) { last.withLock { $0 = event } }

    func take() -> AccessEvent? {
      last.withLock { event in
        defer { event = nil }
        return event
      }
    }
  }

  private let reader: ConfigReader
  private let answers = Answers()
  private let process: String
  private let filePath: String

  init(
    commandLine: [String: ConfigContent], variables: [String: String], process: String,
    file: ConfigurationFile?
  ) {
    func provider(_ name: String, _ contents: [String: ConfigContent]) -> InMemoryProvider {
      let values = contents.map { (AbsoluteConfigKey([$0.key]), ConfigValue($0.value, isSecret: false)) }
      return InMemoryProvider(name: name, values: Dictionary(uniqueKeysWithValues: values))
    }
    let environment = EnvironmentVariablesProvider(environmentVariables: variables)
    self.process = process
    filePath = file?.path ?? ""
    reader = ConfigReader(
      providers: [
        provider("command line", commandLine),
        environment.prefixKeys(with: ConfigKey(["antiphon", process])),
        provider("file", file?.values ?? [:]),
      ], accessReporter: answers)
  }

  func read(_ setting: Setting) throws(ValueError) -> SettingsInForce.Entry {
    let key = ConfigKey([setting.name])
    switch setting.kind {
    case .flag: _ = reader.bool(forKey: key)
    case .single: _ = reader.string(forKey: key)
    case .repeated: _ = reader.stringArray(forKey: key)
    }
    guard let event = answers.take(), let answer = event.providerResults.last else {
      throw ValueError(description: "--\(setting.name) could not be looked up")
    }
    guard case .success(let found) = answer.result else {
      // The command line and the file were read by their types, so that it is the environment.
      throw ValueError(
        description: "\(setting.variable(of: process)) in the environment takes true or false")
    }
    guard let content = found.value?.content else {
      return .init(
        setting: setting, values: setting.defaultValue.map { [$0] } ?? [], source: .byDefault)
    }
    let sources: [SettingsInForce.Source] = [
      .commandLine, .environment(variable: found.encodedKey), .file(path: filePath, key: setting.name),
    ]
    return .init(
      setting: setting, values: Self.texts(content), source: sources[event.providerResults.count - 1])
  }

  private static func texts(_ content: ConfigContent) -> [String] {
    switch content {
    case .bool(let flag): ["\(flag)"]
    case .string(let text): [text]
    // `a,,b` has no empty name in its middle.
    case .stringArray(let texts): texts.filter { !$0.isEmpty }
    default: []
    }
  }
}
