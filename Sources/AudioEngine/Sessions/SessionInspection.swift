import WireProtocol

/// Describes every session to those who ask, a few a step, so that nobody's packet is late for it. Those who ask
/// meanwhile are answered together by the next pass.
struct SessionInspection {
  typealias Receiver = @Sendable ([SessionSnapshot]) -> Void

  private static let sessionsPerStep = 32

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
    for id in unseen.prefix(Self.sessionsPerStep) {
      if let session = sessions[id] { found.append(snapshot(session)) }
    }
    unseen = unseen.dropFirst(Self.sessionsPerStep)
    guard unseen.isEmpty else { return }
    for receiver in receivers { receiver(found) }
    receivers = []
    found = []
  }
}
