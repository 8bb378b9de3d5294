import Dispatch
import Logging
import ServiceSupport
import Synchronization
import Testing
import WireProtocol

/// Keeps what is logged.
private struct KeepingLogHandler: LogHandler {
  final class Lines: Sendable {
    private let kept = Mutex<[String]>([])
    private let news = DispatchSemaphore(value: 0)

    var all: [String] { kept.withLock { $0 } }

    func add(_ line: String) {
      kept.withLock { $0.append(line) }
      news.signal()
    }

    func waitForOne() { news.wait() }
  }

  let lines: Lines
  var logLevel = Logger.Level.trace
  var metadata: Logger.Metadata = [:]

  subscript(metadataKey key: String) -> Logger.Metadata.Value? {
    get { metadata[key] }
    set { metadata[key] = newValue }
  }

  func log(event: LogEvent) {
    lines.add("\(event.message) [\(event.metadata?["session"].map { "\($0)" } ?? "")]")
  }
}

@Suite struct RequestErrorLogTests {
  private let lines = KeepingLogHandler.Lines()

  private func makeLog() -> RequestErrorLog {
    let lines = lines
    return RequestErrorLog(logger: Logger(label: "test") { _ in KeepingLogHandler(lines: lines) })
  }

  @Test func `a thousand errors are two lines, and none is lost in the count`() throws {
    let log = makeLog()
    for number in 0..<1_000 {
      log.note(ErrorReport(.invalidCommand, "number \(number)"), sessionID: try SessionID("s\(number)"))
    }
    lines.waitForOne()
    lines.waitForOne()
    #expect(log.total == 1_000)
    #expect(
      lines.all == [
        #"refused command: "invalid_command: number 0" [s0]"#,
        #"refused command, the last of 999 more within a second: "invalid_command: number 999" [s999]"#,
      ])
  }

  @Test func `what a client sent cannot fill a line or begin another`() {
    let log = makeLog()
    log.note(
      ErrorReport(.invalidCommand, "a\nb\u{1B}[31m" + String(repeating: "c", count: 60_000)), sessionID: nil)
    #expect(lines.all.count == 1)
    #expect(lines.all[0].utf8.count < 400)
    #expect(!lines.all[0].contains("\n") && !lines.all[0].contains("\u{1B}"))
  }
}
