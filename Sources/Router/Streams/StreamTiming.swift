import NIOCore

/// When clients of `/stream` are looked after. All of it follows from the heartbeat, so that a test need not wait.
struct StreamTiming: Sendable {
  static let usualHeartbeatSeconds = 30
  static let heartbeatRange = 1...300

  let heartbeat: TimeAmount
  /// How often those who take nothing are looked for.
  let cleanUp: TimeAmount
  /// A client that has taken nothing for so long is stale: ten heartbeats.
  let stale: TimeAmount
  /// One for whom something waits, and who takes none of it, is dropped after this.
  let stuck: TimeAmount

  init(heartbeatSeconds: Int = Self.usualHeartbeatSeconds) {
    heartbeat = .seconds(Int64(heartbeatSeconds))
    cleanUp = .seconds(Int64(heartbeatSeconds) * 2)
    stale = .seconds(Int64(heartbeatSeconds) * 10)
    stuck = .seconds(Int64(heartbeatSeconds) * 2)
  }
}
