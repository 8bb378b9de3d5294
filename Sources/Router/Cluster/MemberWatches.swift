import NATS
import NIOCore

/// Watches engines or Routers at NATS: asks those that are silent, and says which are gone. Confined to the client's loop.
final class MemberWatches {
  /// Between two looks at the members.
  private static let stepMilliseconds: Int64 = 25

  private struct Row {
    var watch: MemberWatch
    /// An answer to a question of before the member was given up is not the new one's.
    let generation: Int
  }

  private let client: NATSClient
  private let subject: (String) -> String
  private let isBusy: (String) -> Bool
  private let onGone: (String) -> Void
  private var rows: [String: Row] = [:]
  private var lastGeneration = 0
  private var losses: NATSSubscription?
  private var isStopped = false

  /// - Parameters:
  ///   - subject: to which a member's pings go.
  ///   - isBusy: whether sessions depend on a member now.
  ///   - onGone: told each member that is gone, which is watched no more.
  init(
    client: NATSClient, subject: @escaping (String) -> String, isBusy: @escaping (String) -> Bool,
    onGone: @escaping (String) -> Void
  ) {
    self.client = client
    self.subject = subject
    self.isBusy = isBusy
    self.onGone = onGone
  }

  func start() {
    let context = NIOLoopBound(self, eventLoop: client.eventLoop)
    losses = client.observeServerLosses { context.value.serverWasLost() }
    stepRegularly()
  }

  func stop() {
    isStopped = true
    losses?.cancel()
  }

  private func stepRegularly() {
    guard !isStopped else { return }
    client.eventLoop.assumeIsolated().scheduleTask(in: .milliseconds(Self.stepMilliseconds)) { [weak self] in
      guard let self else { return }
      if client.isConnected { step() }
      stepRegularly()
    }
  }

  func add(_ name: String) {
    lastGeneration += 1
    rows[name] = Row(watch: MemberWatch(now: DataPlane.nowMilliseconds), generation: lastGeneration)
  }

  func remove(_ name: String) { rows[name] = nil }

  /// A message of the member has arrived.
  func heard(_ name: String) { rows[name]?.watch.heard(now: DataPlane.nowMilliseconds) }

  /// Something else than NATS indicates that the member may be gone.
  func suspect(_ name: String) { perform(rows[name]?.watch.suspect(), name) }

  /// The Router has reconnected to NATS; members may need longer.
  func expectReconnections() {
    let now = DataPlane.nowMilliseconds
    for name in rows.keys { rows[name]?.watch = MemberWatch(now: now, isReconnecting: true) }
  }

  private func serverWasLost() {
    let now = DataPlane.nowMilliseconds
    for name in rows.keys { rows[name]?.watch.serverWasLost(now: now) }
  }

  private func step() {
    let now = DataPlane.nowMilliseconds
    for name in rows.keys { perform(rows[name]?.watch.step(now: now, isBusy: isBusy(name)), name) }
  }

  private func perform(_ action: MemberWatch.Action?, _ name: String) {
    switch action {
    case nil: break
    case .ping: ping(name)
    case .confirm:
      guard let generation = rows[name]?.generation else { return }
      let wait = TimeAmount.milliseconds(Int64(MemberWatch.confirmationMilliseconds))
      client.eventLoop.assumeIsolated().scheduleTask(in: wait) { [weak self] in
        if let self, !isStopped, rows[name]?.generation == generation { ping(name) }
      }
    case .giveUp:
      rows[name] = nil
      onGone(name)
    }
  }

  private func ping(_ name: String) {
    guard let generation = rows[name]?.generation else { return }
    let context = NIOLoopBound(self, eventLoop: client.eventLoop)
    let timeout = TimeAmount.milliseconds(Int64(MemberWatch.answerMilliseconds))
    client.request(ByteBuffer(), to: subject(name), timeout: timeout) { result in
      context.value.pinged(name, generation, result)
    }
  }

  private func pinged(_ name: String, _ generation: Int, _ result: Result<NATSMessage, NATSError>) {
    guard !isStopped, rows[name]?.generation == generation else { return }
    let now = DataPlane.nowMilliseconds
    switch result {
    case .success: rows[name]?.watch.answered(now: now)
    case .failure(.noResponders): perform(rows[name]?.watch.recordNoResponders(now: now), name)
    case .failure(.timeout): perform(rows[name]?.watch.recordTimeout(now: now), name)
    // Of our own connection, which says nothing about the member.
    case .failure: rows[name]?.watch = MemberWatch(now: now, isReconnecting: true)
    }
  }
}
