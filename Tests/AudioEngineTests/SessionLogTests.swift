import AudioEngineCore
import Dispatch
import Logging
import ServiceSupport
import Synchronization
import Testing
import WireProtocol

/// Gives what is logged to a closure.
private struct TellingLogHandler: LogHandler {
  let tell: @Sendable (String) -> Void
  var logLevel = Logger.Level.info
  var metadata: Logger.Metadata = [:]

  subscript(metadataKey key: String) -> Logger.Metadata.Value? {
    get { metadata[key] }
    set { metadata[key] = newValue }
  }

  func log(event: LogEvent) { tell("\(event.message)") }
}

@Suite struct SessionLogTests {
  @Test func `a flood of sessions is as many lines as it may be, and one for the rest`() throws {
    let lines = Mutex<[String]>([])
    let news = DispatchSemaphore(value: 0)
    let logger = Logger(label: "test") { _ in
      TellingLogHandler { line in
        lines.withLock { $0.append(line) }
        news.signal()
      }
    }
    let log = SessionLog(logger: logger, interval: .seconds(1))
    let id = try SessionID("flood")
    for number in 0..<SessionLog.linesPerMinute + 5 { log.note(.began(url: "media:\(number)"), of: id) }
    for _ in 0...SessionLog.linesPerMinute { news.wait() }
    #expect(lines.withLock { $0.count } == SessionLog.linesPerMinute + 1)
    #expect(lines.withLock { $0.first } == "begins media:0")
    #expect(lines.withLock { $0.last } == "5 more session starts and ends not logged")
    // The next minute has its own. Keys to what is played are nobody's to read.
    log.note(.began(url: "https://me:secret@host/later.mp3?key=secret"), of: id)
    news.wait()
    #expect(lines.withLock { $0.last } == "begins https://host/later.mp3")
  }
}
