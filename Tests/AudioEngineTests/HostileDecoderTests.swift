import AudioEngineCore
import Dispatch
import FuzzTargets
import Glibc
import Synchronization
import Testing
import WireProtocol

/// What a decoder process in a stranger's hands may do to the engine, as found by Tests/Fuzz and by reading.
@Suite struct HostileDecoderTests {
  /// What a message is (`DecoderMessages.swift`).
  private enum Kind: UInt32 {
    case began = 1
    case read, seek, opened, yield, transcodes, packets, ended, metadata, picture, failed
  }

  private static let facts =
    #"{"chapters":[],"isDurationEstimated":false,"codecName":"x","hasPicture":false,"fitsPassthrough":false}"#
  private static let opening = [say(.began), say(.opened, facts)]
  /// Three packets of a byte, which says that they are two frames of 10 ms (RFC 6716, section 3.1).
  private static let packets = "\u{1}\u{0}a\u{1}\u{0}a\u{1}\u{0}a"
  /// Longer than any of these may take, and shorter than the harm they did.
  private static let patience = DispatchTimeInterval.seconds(60)

  private static func say(
    _ kind: Kind, _ payload: String = "", flag: UInt32 = 0, number: Int64 = 0, times: Int = 1
  ) -> Script.Step {
    .send(
      kind: kind.rawValue, flag: flag, number: number, payload: Array(payload.utf8), descriptorCount: 0,
      times: times)
  }

  /// What comes of it; nil where it does not end.
  private func outcome(of steps: [Script.Step], isDeaf: Bool = false) -> ConversationTarget.Outcome? {
    var script = Script(steps)
    script.isDeaf = isDeaf
    let done = DispatchSemaphore(value: 0)
    let outcome = Mutex<ConversationTarget.Outcome?>(nil)
    DispatchQueue(label: "engine").async { [script] in
      let result = try? ConversationTarget.run(script)
      outcome.withLock { $0 = result }
      done.signal()
    }
    return done.wait(timeout: .now() + Self.patience) == .success ? outcome.withLock { $0 } : nil
  }

  @Test func `a conversation as it should be comes to packets`() {
    let turn = Self.say(.packets, Self.packets, flag: 1)
    let outcome = self.outcome(of: Self.opening + [Self.say(.transcodes), turn, turn, Self.say(.ended)])
    #expect(outcome?.failure == nil)
    #expect(outcome?.packetCount == 6)
  }

  @Test func `one that never reads its answers holds nobody up`() throws {
    let steps = [Self.say(.began), Self.say(.read, number: 32_768, times: 100_000)]
    let outcome = try #require(self.outcome(of: steps + steps, isDeaf: true))
    #expect(outcome.failure?.code == .sourceCrashesDecoder)
  }

  @Test func `one that stops in the middle of a text does not hold a listener who leaves`() throws {
    let outcome = try #require(self.outcome(of: [Self.say(.began), Self.say(.opened, "{", flag: 1), .hang]))
    #expect(outcome.failure?.code == .superseded)
  }

  @Test func `one that talks forever does not hold a listener who leaves`() throws {
    let outcome = try #require(self.outcome(of: [Self.say(.began), .cancel, Self.say(.yield, times: .max)]))
    #expect(outcome.failure?.code == .superseded)
  }

  @Test func `packets without an end of their turn are not taken forever`() throws {
    let payload = String(repeating: Self.packets, count: 3_000)
    let steps = Self.opening + [Self.say(.transcodes), Self.say(.packets, payload, times: 5_000)]
    let outcome = try #require(self.outcome(of: steps + steps))
    // Of two processes, 2 MiB each.
    #expect(outcome.failure != nil)
    #expect(outcome.packetCount < 1_500_000)
  }

  @Test func `titles without end are not taken forever`() throws {
    let steps = Self.opening + [Self.say(.transcodes), Self.say(.metadata, #"{"title":"a"}"#, times: .max)]
    #expect(try #require(self.outcome(of: steps + steps)).failure?.code == .sourceCrashesDecoder)
  }

  @Test func `a report is short, whatever it says`() throws {
    let long = String(repeating: "a", count: 50_000)
    let parts = Array(#"{"code":"internal","severity":"fault","message":"\#(long)","hint":"\#(long)"}"#.utf8)
    let steps = stride(from: 0, to: parts.count, by: 30_000).map { start in
      let end = min(parts.count, start + 30_000)
      return Self.say(
        .failed, String(decoding: parts[start..<end], as: UTF8.self), flag: end < parts.count ? 1 : 0)
    }
    let failure = try #require(self.outcome(of: [Self.say(.began)] + steps)?.failure)
    #expect(failure.code == .internal)
    #expect(failure.message.utf8.count < 10_000 && failure.hint?.utf8.count ?? 0 < 10_000)
  }

  @Test func `a row of marks, which takes long to compare, is no text of a decoder's`() throws {
    func outcome(_ count: Int) throws -> ErrorReport? {
      let name = String(repeating: "\u{301}", count: count)
      let facts = Self.facts.dropLast() + ",\"\(name)\":1}"
      let steps = [Self.say(.began), Self.say(.opened, String(facts)), Self.say(.ended)]
      return try #require(self.outcome(of: steps + [.end] + steps)).failure
    }
    #expect(try outcome(WireLimits.maximumTagScalarCount)?.code == .sourceCorrupt)
    #expect(try outcome(WireLimits.maximumTagScalarCount + 1)?.code == .sourceCrashesDecoder)
  }

  @Test func `there is no place before a source's start`() throws {
    let report = #"{"code":"source_corrupt","severity":"common","message":"x"}"#
    func outcome(_ offset: Int64) throws -> ErrorReport? {
      let steps = [Self.say(.began), Self.say(.seek, number: offset), Self.say(.failed, report)]
      return try #require(self.outcome(of: steps + [.end] + steps)).failure
    }
    #expect(try outcome(5)?.code == .sourceCorrupt)
    #expect(try outcome(.max)?.code == .sourceCorrupt)
    #expect(try outcome(-1)?.code == .sourceCrashesDecoder)
    #expect(try outcome(.min)?.code == .sourceCrashesDecoder)
  }

  @Test func `a turn costs no more CPU time than it lasts`() throws {
    let many = String(repeating: Self.packets, count: 20)
    let turn = Self.say(.packets, many, flag: 1, number: .max)
    let outcome = try #require(
      self.outcome(of: Self.opening + [Self.say(.transcodes), turn, Self.say(.ended)]))
    #expect(outcome.packetCount == 60)
    #expect(outcome.packetSeconds > 0 && outcome.packetSeconds < 60)
  }

  @Test func `no thread but its own is taken for its own`() {
    func process(_ id: pid_t) -> DecoderProcess { DecoderProcess(id: id, control: -1) }
    #expect(process(getpid()).hasThread(EngineThread.currentID))
    #expect(!process(getpid()).hasThread(getppid()))
    #expect(!process(getppid()).hasThread(EngineThread.currentID))
  }

  @Test(arguments: 1...3) func `descriptors that come are closed`(count: Int) throws {
    let (own, other) = try DecoderSocket.pair()
    let socket = DecoderSocket(descriptor: own, of: .engine)
    defer { close(other) }
    var pipe: [Int32] = [-1, -1]
    try #require(Glibc.pipe(&pipe) == 0)
    defer { close(pipe[0]) }
    let message = [UInt8](repeating: 0, count: 16)
    let passed = [Int32](repeating: pipe[1], count: count)
    #expect(HostileDecoder.send(message, passing: passed, over: other))
    close(pipe[1])
    #expect(try socket.receive().descriptor == nil)
    // What reads is told the end once nobody can write.
    var end = pollfd(fd: pipe[0], events: Int16(POLLIN), revents: 0)
    #expect(poll(&end, 1, 0) == 1 && end.revents == Int16(POLLHUP))
  }
}
