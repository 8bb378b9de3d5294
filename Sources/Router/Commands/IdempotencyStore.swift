import Collections
import WireProtocol

/// What a client wants once: a key of its own, in one session.
package struct Intent: Hashable, Sendable {
  package var sessionID: SessionID
  package var key: IdempotencyKey

  package init(_ sessionID: SessionID, _ key: IdempotencyKey) {
    self.sessionID = sessionID
    self.key = key
  }
}

/// The answer to a command with an idempotency key, for those who repeat it.
package struct StoredAnswer: Sendable, Equatable {
  package var intent: Intent
  /// The command's fingerprint, which tells a repetition from another command.
  package var fingerprint: String
  package var json: [UInt8]
  /// By the Router's running time (`CumulativeUptimeClock`).
  package var answeredAtMilliseconds: Int
  /// Counts the answers; the oldest has the lowest.
  package var number: Int
  /// Who has asked: what is kept is accounted to it.
  package var client: ClientID

  package init(
    intent: Intent, fingerprint: String, json: [UInt8], answeredAtMilliseconds: Int, number: Int,
    client: ClientID = .router
  ) {
    self.intent = intent
    self.fingerprint = fingerprint
    self.json = json
    self.answeredAtMilliseconds = answeredAtMilliseconds
    self.number = number
    self.client = client
  }

  /// What it takes in memory, about.
  fileprivate var byteCount: Int { json.count + RouterLimits.keptAnswerOverheadByteCount }
}

/// The commands that came with an idempotency key. One that is repeated gets the first one's answer; one that
/// comes while the first is being carried out waits for it (`docs/decisions/0015-idempotency.md`).
package struct IdempotencyStore<Waiter> {
  /// What is to be done with a command.
  package enum Verdict: Equatable {
    /// Nobody has asked before: carry it out, and `finish`.
    case perform
    /// The first one's answer.
    case repeated([UInt8])
    /// The requester waits with others for the first one's answer.
    case waits
  }

  private struct Running {
    var fingerprint: String
    var client: ClientID
    var isKept = false
    var waiters: [Waiter] = []
  }

  /// What is kept for one client.
  private struct Share {
    /// The oldest first.
    var intents: Deque<Intent> = []
    var byteCount = 0
  }

  private let maximumCount: Int
  private let maximumByteCount: Int
  private var running: [Intent: Running] = [:]
  private var answers: [Intent: StoredAnswer] = [:]
  private var shares: [ClientID: Share] = [:]
  private var byteCount = 0
  private var nextNumber = 1
  private var forgotten: [Int] = []

  package init(
    maximumCount: Int = RouterLimits.maximumKeptAnswers,
    maximumByteCount: Int = RouterLimits.keptAnswersByteCount
  ) {
    self.maximumCount = maximumCount
    self.maximumByteCount = maximumByteCount
  }

  package var count: Int { answers.count }

  /// The numbers of the answers that have been forgotten since the last time.
  package mutating func takeForgotten() -> [Int] {
    defer { forgotten = [] }
    return forgotten
  }

  /// Decides about a command.
  ///
  /// - Parameters:
  ///   - fingerprint: equal for equal commands alone.
  ///   - waiter: kept where the verdict is `waits`.
  ///   - client: who asks.
  /// - Throws: `idempotency_conflict` where the key belongs to another command.
  package mutating func begin(
    _ intent: Intent, fingerprint: String, waiter: Waiter, client: ClientID = .router, nowMilliseconds: Int
  ) throws(RequestError) -> Verdict {
    let oldest = nowMilliseconds - RouterLimits.keptAnswerMilliseconds
    if let answer = answers[intent], answer.answeredAtMilliseconds <= oldest { forget(intent) }
    if let first = running[intent] {
      try Self.check(fingerprint, first.fingerprint, intent)
      guard first.waiters.count < RouterLimits.maximumRepetitionsWaiting else {
        throw RequestError(
          .workersExhausted, "\(first.waiters.count) repetitions wait for the first one's answer",
          hint: "wait for one answer")
      }
      running[intent]?.waiters.append(waiter)
      return .waits
    }
    guard let answer = answers[intent] else {
      running[intent] = Running(fingerprint: fingerprint, client: client)
      return .perform
    }
    try Self.check(fingerprint, answer.fingerprint, intent)
    return .repeated(answer.json)
  }

  /// Keeps the answer that is about to be given.
  ///
  /// - Returns: what is to be written; nil where the answer is kept already.
  package mutating func keep(_ json: [UInt8], to intent: Intent, nowMilliseconds: Int) -> StoredAnswer? {
    guard let first = running[intent], !first.isKept else { return nil }
    running[intent]?.isKept = true
    let answer = StoredAnswer(
      intent: intent, fingerprint: first.fingerprint, json: json, answeredAtMilliseconds: nowMilliseconds,
      number: nextNumber, client: first.client)
    restore(answer)
    return answer
  }

  /// Forgets the answer that was about to be given, since what it says could not be written.
  package mutating func retract(_ intent: Intent) {
    guard running[intent]?.isKept == true else { return }
    running[intent]?.isKept = false
    forget(intent)
  }

  /// Ends what `begin` has begun.
  ///
  /// - Returns: who waits for the answer.
  package mutating func finish(_ intent: Intent) -> [Waiter] {
    running.removeValue(forKey: intent)?.waiters ?? []
  }

  /// Takes what has been answered, now or before the Router's start; the oldest first. Where there is no room, the
  /// oldest answer of the client that holds most goes.
  package mutating func restore(_ answer: StoredAnswer) {
    nextNumber = max(nextNumber, answer.number + 1)
    guard answers.updateValue(answer, forKey: answer.intent) == nil else { return }
    byteCount += answer.byteCount
    shares[answer.client, default: Share()].intents.append(answer.intent)
    shares[answer.client]?.byteCount += answer.byteCount
    while answers.count > maximumCount || byteCount > maximumByteCount {
      guard let largest = shares.max(by: { $0.value.byteCount < $1.value.byteCount }),
        let oldest = largest.value.intents.first
      else { return }
      forget(oldest)
    }
  }

  /// Forgets what nobody repeats any more. Called now and then.
  package mutating func forgetExpired(nowMilliseconds: Int) {
    let oldest = nowMilliseconds - RouterLimits.keptAnswerMilliseconds
    for share in shares.values {
      for intent in share.intents {
        guard let answer = answers[intent], answer.answeredAtMilliseconds <= oldest else { break }
        forget(intent)
      }
    }
  }

  private mutating func forget(_ intent: Intent) {
    guard let answer = answers.removeValue(forKey: intent) else { return }
    forgotten.append(answer.number)
    byteCount -= answer.byteCount
    guard let index = shares[answer.client]?.intents.firstIndex(of: intent) else { return }
    shares[answer.client]?.intents.remove(at: index)
    shares[answer.client]?.byteCount -= answer.byteCount
    if shares[answer.client]?.intents.isEmpty == true { shares[answer.client] = nil }
  }

  private static func check(_ fingerprint: String, _ known: String, _ intent: Intent) throws(RequestError) {
    guard Fingerprint.areEqual(fingerprint, known) else {
      throw RequestError(
        .idempotencyConflict,
        "the idempotency key \(intent.key) was used for another command of the session \(intent.sessionID)",
        hint: "choose a new key for each intent")
    }
  }
}
