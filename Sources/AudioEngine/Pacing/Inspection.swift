import WireProtocol

/// Looks at every session for those who ask, a few a round, so that nobody's packet is late for it. Those who ask
/// meanwhile are answered together by the next look.
struct Inspection {
  typealias Receiver = @Sendable ([SessionSnapshot]) -> Void

  private static let sessionsARound = 32

  private var receivers: [Receiver] = []
  private var unseen: ArraySlice<SessionID> = []
  private var found: [SessionSnapshot] = []
  private var waiting: [Receiver] = []

  var isIdle: Bool { receivers.isEmpty && waiting.isEmpty }

  mutating func add(_ receiver: @escaping Receiver) { waiting.append(receiver) }

  mutating func advance(_ sessions: [SessionID: Session], _ snapshot: (Session) -> SessionSnapshot) {
    if receivers.isEmpty {
      guard !waiting.isEmpty else { return }
      swap(&receivers, &waiting)
      unseen = Array(sessions.keys)[...]
      found.reserveCapacity(unseen.count)
    }
    for id in unseen.prefix(Self.sessionsARound) {
      if let session = sessions[id] { found.append(snapshot(session)) }
    }
    unseen = unseen.dropFirst(Self.sessionsARound)
    guard unseen.isEmpty else { return }
    for receiver in receivers { receiver(found) }
    receivers = []
    found = []
  }
}
