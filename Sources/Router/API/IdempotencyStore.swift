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
package struct KeptAnswer: Sendable, Equatable {
  package var intent: Intent
  /// Of the command, to tell a repetition from another one.
  package var fingerprint: String
  package var json: [UInt8]
  /// Unix time.
  package var answeredAtMilliseconds: Int
  /// Counts the answers; the oldest has the lowest.
  package var number: Int

  package init(
    intent: Intent, fingerprint: String, json: [UInt8], answeredAtMilliseconds: Int, number: Int
  ) {
    self.intent = intent
    self.fingerprint = fingerprint
    self.json = json
    self.answeredAtMilliseconds = answeredAtMilliseconds
    self.number = number
  }
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
    /// The asker waits with others for the first one's answer.
    case waits
  }

  private struct Running {
    var fingerprint: String
    var isKept = false
    var waiters: [Waiter] = []
  }

  private let maximumCount: Int
  private let maximumByteCount: Int
  private var running: [Intent: Running] = [:]
  private var answers: [Intent: KeptAnswer] = [:]
  /// The oldest answer first.
  private var order: Deque<Intent> = []
  private var byteCount = 0
  private var nextNumber = 1

  package init(
    maximumCount: Int = RouterLimits.maximumKeptAnswers,
    maximumByteCount: Int = RouterLimits.keptAnswersByteCount
  ) {
    self.maximumCount = maximumCount
    self.maximumByteCount = maximumByteCount
  }

  package var count: Int { answers.count }

  /// Answers with lower numbers are forgotten.
  package var oldestNumber: Int { order.first.flatMap { answers[$0]?.number } ?? nextNumber }

  /// Decides about a command.
  ///
  /// - Parameters:
  ///   - fingerprint: equal for equal commands alone.
  ///   - waiter: kept where the verdict is `waits`.
  /// - Throws: `idempotency_conflict` where the key belongs to another command.
  package mutating func begin(
    _ intent: Intent, fingerprint: String, waiter: Waiter, nowMilliseconds: Int
  ) throws(Refusal) -> Verdict {
    forgetExpired(nowMilliseconds: nowMilliseconds)
    if let first = running[intent] {
      try Self.check(fingerprint, first.fingerprint, intent)
      guard first.waiters.count < RouterLimits.maximumRepetitionsWaiting else {
        throw Refusal(
          .workersExhausted, "\(first.waiters.count) repetitions wait for the first one's answer",
          hint: "wait for one answer")
      }
      running[intent]?.waiters.append(waiter)
      return .waits
    }
    guard let answer = answers[intent] else {
      running[intent] = Running(fingerprint: fingerprint)
      return .perform
    }
    try Self.check(fingerprint, answer.fingerprint, intent)
    return .repeated(answer.json)
  }

  /// Keeps the answer that is about to be given.
  ///
  /// - Returns: what is to be written; nil where the answer is kept already.
  package mutating func keep(_ json: [UInt8], to intent: Intent, nowMilliseconds: Int) -> KeptAnswer? {
    guard let first = running[intent], !first.isKept else { return nil }
    running[intent]?.isKept = true
    let answer = KeptAnswer(
      intent: intent, fingerprint: first.fingerprint, json: json, answeredAtMilliseconds: nowMilliseconds,
      number: nextNumber)
    restore(answer)
    return answer
  }

  /// Ends what `begin` has begun.
  ///
  /// - Returns: who waits for the answer.
  package mutating func finish(_ intent: Intent) -> [Waiter] {
    running.removeValue(forKey: intent)?.waiters ?? []
  }

  /// Takes what has been answered, now or before the Router's start; the oldest first.
  package mutating func restore(_ answer: KeptAnswer) {
    guard answers.updateValue(answer, forKey: answer.intent) == nil else { return }
    nextNumber = answer.number + 1
    order.append(answer.intent)
    byteCount += answer.json.count
    while answers.count > maximumCount || byteCount > maximumByteCount { forgetOldest() }
  }

  private mutating func forgetExpired(nowMilliseconds: Int) {
    let oldest = nowMilliseconds - RouterLimits.keptAnswerMilliseconds
    while let intent = order.first, let answer = answers[intent], answer.answeredAtMilliseconds <= oldest {
      forgetOldest()
    }
  }

  private mutating func forgetOldest() {
    guard let intent = order.popFirst(), let answer = answers.removeValue(forKey: intent) else { return }
    byteCount -= answer.json.count
  }

  private static func check(_ fingerprint: String, _ known: String, _ intent: Intent) throws(Refusal) {
    guard fingerprint == known else {
      throw Refusal(
        .idempotencyConflict,
        "the idempotency key \(intent.key) was used for another command of the session \(intent.sessionID)",
        hint: "choose a new key for each intent")
    }
  }
}
