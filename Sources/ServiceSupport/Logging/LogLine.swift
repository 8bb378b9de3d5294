import Glibc
import Logging

/// A log line in its two forms. Nothing that is said in it can end it or begin another.
public struct LogLine {
  /// UTC, as RFC 3339 has it, with milliseconds.
  public var time: String
  public var level: Logger.Level
  public var process: String
  public var message: String
  public var metadata: Logger.Metadata

  public init(
    time: String, level: Logger.Level, process: String, message: String, metadata: Logger.Metadata
  ) {
    self.time = time
    self.level = level
    self.process = process
    self.message = message
    self.metadata = metadata
  }

  /// For people: the time, the level, the message, and `key=value` of what it concerns.
  public var text: String {
    let concerns = metadata.sorted { $0.key < $1.key }.map { " \($0.key)=\(Self.plain("\($0.value)"))" }
    return "\(time) \(level.rawValue.uppercased()) \(LogText.escaped(message))\(concerns.joined())\n"
  }

  /// For programs: one object with `ts`, `level`, `process`, `message` and the metadata beside them.
  public var json: String {
    let own = [("ts", time), ("level", level.rawValue), ("process", process), ("message", message)]
    let names = Set(own.map(\.0))
    let concerns = metadata.sorted { $0.key < $1.key }.map { key, value in
      // A name of the line's own is not taken from it.
      (names.contains(key) ? "metadata.\(key)" : key, "\(value)")
    }
    let fields = (own + concerns).map { "\(LogText.json($0)):\(LogText.json($1))" }
    return "{\(fields.joined(separator: ","))}\n"
  }

  /// Quoted where it would not be read as one value.
  private static func plain(_ value: String) -> String {
    let escaped = LogText.escaped(value)
    let isPlain = !escaped.isEmpty && !escaped.contains { $0 == " " || $0 == "\"" || $0 == "=" }
    return isPlain ? escaped : "\"\(escaped.replacing("\"", with: "\\\""))\""
  }

  static func now() -> String {
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
