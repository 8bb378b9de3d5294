import Testing
import WireProtocol

@Suite struct `The clock of another machine` {
  private let anchor = EngineEvent.Anchor(positionMilliseconds: 40, dueNanoseconds: 1_000)

  @Test(arguments: [(1_000, 5_000), (5_000, 1_000)] as [(UInt64, UInt64)])
  func `is ours after the offset`(_ engine: UInt64, _ ours: UInt64) {
    let offset = ClockOffset(engineNanoseconds: engine, ourNanoseconds: ours)
    let due = EngineEvent.Anchor(positionMilliseconds: 40, dueNanoseconds: ours)
    let asItCame = EngineEvent.Anchor(positionMilliseconds: 40, dueNanoseconds: engine)
    #expect(offset.ours(EngineEvent(.playing(asItCame))).body == .playing(due))
    #expect(offset.ours(EngineEvent(.resumed(asItCame))).body == .resumed(due))
    #expect(offset.ours(EngineEvent(.rebased(asItCame))).body == .rebased(due))
    #expect(offset.ours(EngineEvent(.burst(asItCame, count: 3))).body == .burst(due, count: 3))
    #expect(
      offset.ours(EngineEvent(.seeked(positionMilliseconds: 1, dueNanoseconds: engine))).body
        == .seeked(positionMilliseconds: 1, dueNanoseconds: ours))
  }

  @Test func `changes nothing that has no time`() {
    let offset = ClockOffset(engineNanoseconds: 1, ourNanoseconds: 2)
    let paused = EngineEvent(.seeked(positionMilliseconds: 1, dueNanoseconds: nil))
    #expect(offset.ours(paused) == paused)
    #expect(ClockOffset.none.ours(EngineEvent(.playing(anchor))) == EngineEvent(.playing(anchor)))
  }
}
