import ArgumentParser
import Logging

/// What both processes let an operator say about their logs.
public struct LogOptions: ParsableArguments, Sendable {
  @Option(name: .customLong("log-level"), help: "Lowest level that is logged.")
  public var level = Logger.Level.info

  @Option(
    name: .customLong("log-format"), help: "A line of text for people, or a JSON object a line for programs.")
  public var format = LogFormat.text

  public init() {}
}

/// How log lines are written.
public enum LogFormat: String, CaseIterable, Sendable, ExpressibleByArgument {
  case text, json
}

// Logging does not know ArgumentParser and will not: a level's name is all there is to it.
// swift-format-ignore: AvoidRetroactiveConformances
extension Logger.Level: @retroactive ExpressibleByArgument {}

/// The log of one process, on standard error.
public enum ProcessLog {
  /// - Parameter process: named on every JSON line.
  public static func logger(_ process: String, level: Logger.Level, format: LogFormat) -> Logger {
    Logger(label: process) { label in
      StandardErrorLogHandler(process: label, level: level, format: format)
    }
  }
}
