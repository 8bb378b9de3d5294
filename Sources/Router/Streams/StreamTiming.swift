import NIOCore

/// When clients of `/stream` are looked after. All of it follows from the heartbeat, so that a test need not wait.
package struct StreamTiming: Sendable {
  package static let usualHeartbeatSeconds = 30
  static let heartbeatRange = 1...300

  package let heartbeat: TimeAmount
  /// How often those who have gone stale are looked for: every other heartbeat.
  package let cleanUp: TimeAmount
  /// A client whose end has acknowledged nothing for so long is stale: ten heartbeats.
  package let stale: TimeAmount
  /// One for whom something waits, and who takes none of it, is dropped after this.
  package let stuck: TimeAmount

  package init(heartbeatSeconds: Int) {
    heartbeat = .seconds(Int64(heartbeatSeconds))
    cleanUp = .seconds(Int64(heartbeatSeconds) * 2)
    stale = .seconds(Int64(heartbeatSeconds) * 10)
    stuck = .seconds(Int64(heartbeatSeconds) * 2)
  }
}
