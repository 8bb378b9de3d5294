import AudioEngineCore
import Testing

@Suite struct `A live source that is gone` {
  @Test func `is asked more and more seldom, up to every 30 s`() {
    var backoff = LiveBackoff()
    let pauses = (0..<10).map { _ in backoff.nextPause(packetCount: 100, random: 1) }
    #expect(pauses == [250, 500, 1_000, 2_000, 4_000, 8_000, 16_000, 30_000, 30_000, 30_000])
  }

  @Test func `is asked by each engine at another time`() {
    var (early, late) = (LiveBackoff(), LiveBackoff())
    for _ in 0..<9 {
      let pause = late.nextPause(packetCount: 0, random: 1)
      #expect(early.nextPause(packetCount: 0, random: 0) == pause / 2)
    }
  }

  @Test func `is asked soon again where it gave sound meanwhile`() {
    var backoff = LiveBackoff()
    for _ in 0..<8 { _ = backoff.nextPause(packetCount: 1_000, random: 1) }
    #expect(backoff.nextPause(packetCount: 1_499, random: 1) == 30_000)
    #expect(backoff.nextPause(packetCount: 1_999, random: 1) == 250)
  }
}
