import Glibc
import Logging

/// One line a message on standard error: time, level, message, and what it concerns.
public struct StandardErrorLogHandler: LogHandler {
  public var logLevel: Logger.Level
  public var metadata: Logger.Metadata = [:]

  public init(level: Logger.Level) {
    logLevel = level
  }

  public subscript(metadataKey key: String) -> Logger.Metadata.Value? {
    get { metadata[key] }
    set { metadata[key] = newValue }
  }

  public func log(event: LogEvent) {
    let line = Self.line(
      time: Self.now(), level: event.level, message: "\(event.message)",
      metadata: metadata.merging(event.metadata ?? [:]) { $1 })
    Array(line.utf8).withUnsafeBytes { bytes in
      // One call a line, so that lines of different threads do not mix; nobody to tell where it fails.
      _ = write(STDERR_FILENO, bytes.baseAddress, bytes.count)
    }
  }

  public static func line(
    time: String, level: Logger.Level, message: String, metadata: Logger.Metadata
  ) -> String {
    let concerns = metadata.sorted { $0.key < $1.key }.map { " \($0.key)=\($0.value)" }.joined()
    // What comes from outside stays on its line.
    let text = (message + concerns).split(whereSeparator: \.isNewline).joined(separator: " ")
    return "\(time) \(level.rawValue.uppercased()) \(text)\n"
  }

  /// UTC, as ISO 8601 with milliseconds.
  private static func now() -> String {
    var time = timespec()
    clock_gettime(CLOCK_REALTIME, &time)
    var parts = tm()
    gmtime_r(&time.tv_sec, &parts)
    func padded(_ value: some BinaryInteger, _ width: Int) -> String {
      let digits = String(value)
      return String(repeating: "0", count: max(0, width - digits.count)) + digits
    }
    let date = [padded(parts.tm_year + 1900, 4), padded(parts.tm_mon + 1, 2), padded(parts.tm_mday, 2)]
    let clock = [padded(parts.tm_hour, 2), padded(parts.tm_min, 2), padded(parts.tm_sec, 2)]
    return date.joined(separator: "-") + "T" + clock.joined(separator: ":") + "."
      + padded(time.tv_nsec / 1_000_000, 3) + "Z"
  }
}
