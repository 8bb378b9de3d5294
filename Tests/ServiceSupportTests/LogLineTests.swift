import Foundation
import Logging
import ServiceSupport
import Testing

@Suite struct LogLineTests {
  private func line(_ message: String, _ metadata: Logger.Metadata = [:]) -> LogLine {
    LogLine(
      time: "2026-11-22T03:00:00.000Z", level: .warning, process: "Router", message: message,
      metadata: metadata)
  }

  private func fields(_ line: LogLine) throws -> [String: String] {
    try JSONDecoder().decode([String: String].self, from: Data(line.json.utf8))
  }

  @Test func `text has the time, the level, the message and what it concerns`() {
    let text = line("it \"fell\"", ["session": "s1", "title": "a b", "empty": ""]).text
    #expect(text == "2026-11-22T03:00:00.000Z WARNING it \"fell\" empty=\"\" session=s1 title=\"a b\"\n")
  }

  @Test func `JSON has the same as fields`() throws {
    let written = line("it \"fell\" \\ ü", ["session": "s1", "count": "\(3)"])
    #expect(
      try fields(written) == [
        "ts": "2026-11-22T03:00:00.000Z", "level": "warning", "process": "Router",
        "message": "it \"fell\" \\ ü", "session": "s1", "count": "3",
      ])
    #expect(written.json.hasPrefix("{\"ts\":\"2026-"))
  }

  @Test func `metadata takes no name of the line's own`() throws {
    let found = try fields(line("m", ["level": "info", "ts": "0"]))
    #expect(found["level"] == "warning" && found["metadata.level"] == "info")
    #expect(found["ts"] == "2026-11-22T03:00:00.000Z" && found["metadata.ts"] == "0")
  }

  @Test(arguments: [
    "a\nb", "a\r\nb", "a\u{0}b", "a\u{1b}[2Jb", "a\u{7f}b", "a\u{85}b", "a\u{2028}b", "a\u{2029}b",
    "a\u{202e}b", "a\u{2066}b", "a\tb", "a\u{9b}2Jb",
  ])
  func `nothing said ends a line or moves a cursor`(_ text: String) throws {
    for form in [line(text).text, line(text).json, line("m", ["k": "\(text)"]).text] {
      let scalars = form.unicodeScalars
      #expect(scalars.last == "\n")
      let unsafe = scalars.dropLast().filter {
        $0.properties.generalCategory == .control || $0.properties.generalCategory == .lineSeparator
          || $0.properties.generalCategory == .paragraphSeparator || (0x202A...0x202E).contains($0.value)
          || (0x2066...0x2069).contains($0.value)
      }
      #expect(unsafe.isEmpty, "\(form.debugDescription)")
    }
    // A program that reads it has it as it was.
    #expect(try fields(line(text))["message"] == text)
  }

  @Test func `a line is short whatever is said`() throws {
    let long = String(repeating: "ü", count: 100_000)
    #expect(line(long).text.utf8.count < 2_100)
    #expect(try #require(try fields(line(long))["message"]).hasSuffix("…"))
  }
}
