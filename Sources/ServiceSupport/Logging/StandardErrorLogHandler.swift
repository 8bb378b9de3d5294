import Glibc
import Logging

/// One line a message on standard error: time, level, message, and what it concerns.
public struct StandardErrorLogHandler: LogHandler {
  public var logLevel: Logger.Level
  public var metadata: Logger.Metadata = [:]
  private let process: String
  private let format: LogFormat

  public init(process: String, level: Logger.Level, format: LogFormat) {
    self.process = process
    self.format = format
    logLevel = level
  }

  public subscript(metadataKey key: String) -> Logger.Metadata.Value? {
    get { metadata[key] }
    set { metadata[key] = newValue }
  }

  public func log(event: LogEvent) {
    let line = LogLine(
      time: LogLine.now(), level: event.level, process: process, message: "\(event.message)",
      metadata: metadata.merging(event.metadata ?? [:]) { $1 })
    let text = format == .json ? line.json : line.text
    Array(text.utf8).withUnsafeBytes { bytes in
      // One call a line, so that lines of different threads do not mix; nobody to tell where it fails.
      _ = write(STDERR_FILENO, bytes.baseAddress, bytes.count)
    }
  }
}
