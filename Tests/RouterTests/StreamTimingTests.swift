import NIOCore
import RouterCore
import Testing

/// The original plan's figures (docs/decisions/0030).
@Suite struct StreamTimingTests {
  @Test func `by default heartbeats are 30 s apart, clean-ups 60 s, and after 5 min a client is stale`() {
    let timing = StreamTiming(heartbeatSeconds: StreamTiming.usualHeartbeatSeconds)
    #expect(timing.heartbeat == .seconds(30))
    #expect(timing.cleanUp == .seconds(60))
    #expect(timing.stale == .minutes(5))
  }

  @Test func `shorter heartbeats shorten all of it alike`() {
    let timing = StreamTiming(heartbeatSeconds: 1)
    #expect(timing.cleanUp == .seconds(2))
    #expect(timing.stale == .seconds(10))
  }
}
