/// How slowly a client may send: what a server waits for, and until when. Pure, so that it is tested without a clock.
public struct RequestPace: Sendable, Equatable {
  /// From the connection's beginning to the end of the first request's head.
  public var headSeconds: Int
  /// From the end of an answer to the end of the next request's head.
  public var idleSeconds: Int
  /// From the end of a head to the end of an empty body.
  public var bodySeconds: Int
  /// Every so many bytes received give a second more.
  public var bodyBytesPerSecond: Int
  /// How long a client may take nothing of an answer.
  public var untakenSeconds: Int

  /// The defaults: a slow phone sends a head within 30 s, browsers keep a connection for about a minute, and 4 KiB a
  /// second is what a line of 32 kbit/s carries.
  public init(
    headSeconds: Int = 30, idleSeconds: Int = 75, bodySeconds: Int = 10, bodyBytesPerSecond: Int = 4_096,
    untakenSeconds: Int = 30
  ) {
    precondition(bodyBytesPerSecond > 0)
    self.headSeconds = headSeconds
    self.idleSeconds = idleSeconds
    self.bodySeconds = bodySeconds
    self.bodyBytesPerSecond = bodyBytesPerSecond
    self.untakenSeconds = untakenSeconds
  }

  package static let nanosecondsPerSecond: UInt64 = 1_000_000_000
}

/// Where a connection is between its requests, and when it has waited too long.
package struct RequestProgress {
  package enum State: Equatable {
    /// No head has come since the connection or the last answer.
    case awaitingHead
    /// A head has come, and its body has not ended.
    case receivingBody(byteCount: Int)
    /// The request is whole, and its answer is not.
    case answering
    /// It is closed: nothing more is waited for.
    case expired
  }

  private let pace: RequestPace
  package private(set) var state = State.awaitingHead
  /// nil while the server is the one that is waited for.
  package private(set) var deadlineNanoseconds: UInt64?
  /// Whether an answer to the request in progress has begun: then no other can be given.
  package private(set) var hasBegunAnswer = false
  private var hasEndedAnswer = false

  package init(_ pace: RequestPace, now: UInt64) {
    self.pace = pace
    deadlineNanoseconds = now + UInt64(pace.headSeconds) * RequestPace.nanosecondsPerSecond
  }

  package mutating func head(now: UInt64) {
    guard state != .expired else { return }
    state = .receivingBody(byteCount: 0)
    hasBegunAnswer = false
    hasEndedAnswer = false
    deadlineNanoseconds = now + UInt64(pace.bodySeconds) * RequestPace.nanosecondsPerSecond
  }

  package mutating func body(byteCount: Int) {
    guard case .receivingBody(let sum) = state, let deadline = deadlineNanoseconds else { return }
    state = .receivingBody(byteCount: sum + byteCount)
    deadlineNanoseconds =
      deadline + UInt64(byteCount) * RequestPace.nanosecondsPerSecond / UInt64(pace.bodyBytesPerSecond)
  }

  package mutating func end(now: UInt64) {
    guard case .receivingBody = state else { return }
    state = .answering
    deadlineNanoseconds = nil
    // An answer may have been given without waiting for the body.
    if hasEndedAnswer { awaitNext(now: now) }
  }

  package mutating func beginAnswer() { hasBegunAnswer = true }

  package mutating func endAnswer(now: UInt64) {
    hasEndedAnswer = true
    if state == .answering { awaitNext(now: now) }
  }

  /// Takes note that it took too long; what was waited for.
  package mutating func expire() -> State {
    defer {
      state = .expired
      deadlineNanoseconds = nil
    }
    return state
  }

  private mutating func awaitNext(now: UInt64) {
    state = .awaitingHead
    deadlineNanoseconds = now + UInt64(pace.idleSeconds) * RequestPace.nanosecondsPerSecond
  }
}
