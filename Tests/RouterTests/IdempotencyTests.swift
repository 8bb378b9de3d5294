import RouterCore
import Testing
import WireProtocol

@Suite struct `An idempotency key` {
  @Test(arguments: ["a", "3f0c-9", String(repeating: "k", count: 64), "\"quoted\"", "!~"])
  func `is printable and short`(_ text: String) throws {
    #expect(try IdempotencyKey(text).text == text)
  }

  @Test(arguments: ["", " ", "a b", "ä", "a\n", "a\u{7F}", String(repeating: "k", count: 65)])
  func `is refused where it is not`(_ text: String) {
    let requestError = #expect(throws: RequestError.self) { try IdempotencyKey(text) }
    #expect(requestError?.report.code == .invalidCommand)
  }
}

@Suite struct `Repeated commands` {
  private var store = IdempotencyStore<String>()
  private let intent: Intent

  init() throws {
    intent = try Self.intent("7", "k")
  }

  private static func intent(_ session: String, _ key: String) throws -> Intent {
    Intent(try SessionID(session), try IdempotencyKey(key))
  }

  private mutating func ask(
    _ intent: Intent, _ fingerprint: String = "f", as waiter: String = "", at now: Int = 0
  ) throws -> IdempotencyStore<String>.Verdict {
    try store.begin(intent, fingerprint: fingerprint, waiter: waiter, nowMilliseconds: now)
  }

  private mutating func answer(_ intent: Intent, _ json: [UInt8], at now: Int = 0) -> [String] {
    _ = store.keep(json, to: intent, nowMilliseconds: now)
    return store.finish(intent)
  }

  @Test mutating func `get the first one's answer`() throws {
    let first = try ask(intent)
    #expect(first == .perform)
    _ = answer(intent, [1])
    for _ in 1...2 {
      let again = try ask(intent)
      #expect(again == .repeated([1]))
    }
  }

  @Test mutating func `wait while the first one is carried out, and while its answer is written`() throws {
    _ = try ask(intent)
    let early = try ask(intent, as: "b")
    let kept = store.keep([1], to: intent, nowMilliseconds: 0)
    let late = try ask(intent, as: "c")
    #expect([early, late] == [.waits, .waits])
    #expect(kept?.json == [1])
    let again = store.keep([1], to: intent, nowMilliseconds: 0)
    #expect(again == nil, "written once")
    let waiters = store.finish(intent)
    #expect(waiters == ["b", "c"])
    let nobody = store.finish(intent)
    #expect(nobody == [])
  }

  @Test mutating func `are carried out again where the answer was not kept`() throws {
    _ = try ask(intent)
    _ = try ask(intent, as: "b")
    let waiters = store.finish(intent)
    #expect(waiters == ["b"], "who waits gets that answer too")
    let again = try ask(intent)
    #expect(again == .perform)
  }

  @Test mutating func `must be the same command, also while the first is carried out`() throws {
    _ = try ask(intent)
    for _ in 1...2 {
      let requestError = #expect(throws: RequestError.self) { try ask(intent, "other") }
      #expect(requestError?.report.code == .idempotencyConflict)
      #expect(requestError?.status == 422)
      _ = answer(intent, [1])
    }
  }

  @Test mutating func `are a session's own`() throws {
    _ = try ask(intent)
    _ = answer(intent, [1])
    let other = try ask(Self.intent("8", "k"), "other")
    #expect(other == .perform)
  }

  @Test mutating func `are known for 24 hours`() throws {
    let day = RouterLimits.keptAnswerMilliseconds
    _ = try ask(intent, at: 1_000)
    _ = answer(intent, [1], at: 2_000)
    let known = try ask(intent, at: 2_000 + day - 1)
    #expect(known == .repeated([1]))
    let forgotten = try ask(intent, at: 2_000 + day)
    #expect(forgotten == .perform)
    #expect(store.count == 0)
  }

  @Test mutating func `are kept up to a number, the oldest forgotten first`() throws {
    store = IdempotencyStore(maximumCount: 3)
    let intents = try (1...4).map { try Self.intent("7", "k\($0)") }
    for intent in intents {
      _ = try ask(intent)
      _ = answer(intent, [1])
    }
    #expect(store.count == 3)
    let forgotten = store.takeForgotten()
    #expect(forgotten == [1])
    let verdicts = try [intents[1], intents[3], intents[0]].map { try ask($0) }
    #expect(verdicts == [.repeated([1]), .repeated([1]), .perform])
  }

  @Test mutating func `are kept up to a number of bytes`() throws {
    store = IdempotencyStore(maximumByteCount: 10 + 2 * RouterLimits.keptAnswerOverheadByteCount)
    for (name, size, count) in [("a", 6, 1), ("b", 4, 2), ("c", 1, 2), ("d", 600, 0)] {
      let intent = try Self.intent("7", name)
      _ = try ask(intent)
      _ = answer(intent, [UInt8](repeating: 0, count: size))
      #expect(store.count == count, "after \(name)")
    }
  }

  @Test mutating func `of one client that asks without end push out its own alone`() throws {
    store = IdempotencyStore(maximumCount: 10)
    let small = ClientID(subject: "small", address: nil)
    let greedy = ClientID(subject: "greedy", address: nil)
    for number in 0..<50 {
      let intent = try Self.intent("7", "k\(number)")
      _ = try store.begin(
        intent, fingerprint: "f", waiter: "", client: number == 0 ? small : greedy, nowMilliseconds: 0)
      _ = answer(intent, [1])
    }
    let verdicts = try [0, 1, 40, 41, 49].map { try ask(Self.intent("7", "k\($0)")) }
    #expect(verdicts == [.repeated([1]), .perform, .perform, .repeated([1]), .repeated([1])])
  }

  @Test mutating func `are carried out again where their answer could not be written`() throws {
    _ = try ask(intent)
    _ = store.keep([1], to: intent, nowMilliseconds: 0)
    store.retract(intent)
    _ = store.finish(intent)
    let again = try ask(intent)
    #expect(again == .perform)
    let forgotten = store.takeForgotten()
    #expect(forgotten == [1])
  }

  @Test mutating func `are one where an older Router kept another kind of fingerprint`() throws {
    _ = try ask(intent, "\"5f3\"")
    _ = answer(intent, [1])
    let known = try ask(intent, "1:77")
    #expect(known == .repeated([1]))
  }

  @Test mutating func `wait up to a number`() throws {
    for _ in 0...RouterLimits.maximumRepetitionsWaiting { _ = try ask(intent) }
    let requestError = #expect(throws: RequestError.self) { try ask(intent) }
    #expect(requestError?.status == 503)
  }

  @Test mutating func `are known again after a restart`() throws {
    let kept = StoredAnswer(
      intent: intent, fingerprint: "f", json: [9], answeredAtMilliseconds: 0, number: 41)
    store.restore(kept)
    let known = try ask(intent)
    #expect(known == .repeated([9]))
    let requestError = #expect(throws: RequestError.self) { try ask(intent, "other") }
    #expect(requestError?.report.code == .idempotencyConflict)
    let other = try Self.intent("7", "other")
    _ = try ask(other)
    let next = store.keep([1], to: other, nowMilliseconds: 0)
    #expect(next?.number == 42)
  }
}
